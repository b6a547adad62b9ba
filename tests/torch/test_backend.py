# SPDX-License-Identifier: MIT
"""torch.compile(model, backend="tilewise"): inference and training graphs, options, and the name of the backend."""
from __future__ import annotations

import collections
import copy
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import graph_models  # noqa: E402
from against_torch import DEVICE  # noqa: E402
from torch import nn  # noqa: E402

import tilewise.torch.graph  # noqa: E402  makes the backend known
from tilewise.torch.graph.backend import Session  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


def kinds(session: Session, graph: int) -> collections.Counter[str]:
    return collections.Counter(str(node.target) for node in session.graphs[graph].graph.nodes if node.op == "call_function")


def gradients(model: nn.Module, run: Any, x: torch.Tensor) -> list[torch.Tensor]:
    """Of the parameters and the input, for a sum of squares."""
    model.zero_grad()
    x = x.detach().clone().requires_grad_(x.is_floating_point())
    run(x).square().sum().backward()
    return [given.grad.clone() for given in (x, *model.parameters()) if given.grad is not None]


def assert_same(have: list[torch.Tensor], want: list[torch.Tensor], bound: float = 1e-4) -> None:
    assert len(have) == len(want)
    largest = max(x.norm() for x in want)
    for one, other in zip(have, want):  # that of a bias before BatchNorm is nothing but rounding
        assert (one - other).norm() <= bound * max(other.norm(), 1e-4 * largest)


# ---- the name and its options ----------------------------------------------------------------------------------------


def test_backend_is_known_by_name() -> None:
    assert "tilewise" in torch._dynamo.list_backends()


def test_installed_package_names_the_backend() -> None:
    text = (pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text()
    section = text.split('[project.entry-points."torch_dynamo_backends"]')[1].splitlines()[1]
    name, _, where = section.partition(" = ")
    module, _, attribute = where.strip('"').partition(":")
    assert name == "tilewise"
    assert getattr(__import__(module, fromlist=[attribute]), attribute) is tilewise.torch.graph.backend


@pytest.mark.parametrize("options, message", [
    ({"frieze": True}, "'frieze' is unknown; there are freeze, compiler, and Inductor's own"),
    ({"compiler": "gcc"}, "'gcc'; need one of inductor, eager"), ({"freeze": "yes"}, "'yes'; need bool")])
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        torch.compile(nn.Linear(2, 2).to(DEVICE), backend="tilewise", options=options)(torch.ones(1, 2, device=DEVICE))


def test_options_of_inductor_and_modes_are_passed_on() -> None:
    from tilewise.torch.graph.options import session
    assert session("reduce-overhead", {"max_autotune": True}).inductor == {
        "triton.cudagraphs": True, "max_autotune": True}
    assert session(None, {"freezing": True}).freeze and not session(None, None).freeze


# ---- inference -------------------------------------------------------------------------------------------------------


def test_inference_without_freezing_folds_nothing() -> None:
    model, x = graph_models.residual(), torch.randn(2, 3, 16, 16, device=DEVICE)
    session = Session(compiler="eager")
    with torch.no_grad():
        assert torch.allclose(torch.compile(model, backend=session.compile)(x), model(x), atol=1e-5)
        model.first.bias += 1  # parameters are read in each call
        assert torch.allclose(torch.compile(model, backend=session.compile)(x), model(x), atol=1e-5)
    found = kinds(session, 0)
    assert found["aten._native_batch_norm_legit_no_training.default"] == 2
    assert found["tilewise.conv.default"] == 2 and found["aten.silu.default"] == 0


def test_products_of_odd_sizes_are_not_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor would pad them with copies on a GPU, and no epilogue is found behind one."""
    from tilewise.torch.graph import passes
    padding = []
    monkeypatch.setattr(passes, "ALL", (*passes.ALL, lambda graph: padding.append(torch._inductor.config.shape_padding)))
    model, x = nn.Sequential(nn.Linear(9, 5), nn.GELU()).to(DEVICE), torch.randn(1021, 9, device=DEVICE)
    session = Session(compiler="eager")
    with torch.no_grad():
        assert torch.allclose(torch.compile(model, backend=session.compile)(x), model(x), atol=1e-5)
    assert padding == [False]
    assert kinds(session, 0) == {"tilewise.linear.default": 1}


def test_freezing_folds() -> None:
    model, x = graph_models.residual(), torch.randn(2, 3, 16, 16, device=DEVICE)
    compiled = torch.compile(model, backend="tilewise", options={"freeze": True, "compiler": "eager"})
    session = Session(freeze=True, compiler="eager")
    with torch.no_grad():
        assert torch.allclose(compiled(x), model(x), atol=1e-5)
        torch.compile(model, backend=session.compile)(x)
    assert kinds(session, 0)["aten._native_batch_norm_legit_no_training.default"] == 0


# ---- training --------------------------------------------------------------------------------------------------------


class Convolutions(nn.Module):
    """Every kind of convolution that has a gradient of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8),
            nn.GELU(), nn.Conv2d(8, 12, (3, 1), padding=(1, 0), groups=4, bias=False), nn.SiLU(),
            nn.ConvTranspose2d(12, 6, 3, stride=2, padding=1, output_padding=1, groups=2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels-last"])
def test_gradients_of_convolutions(last: bool) -> None:
    torch.manual_seed(0)
    model, x = Convolutions().to(DEVICE), torch.randn(2, 3, 12, 16, device=DEVICE)
    if last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    session = Session(compiler="eager")
    assert_same(gradients(model, torch.compile(model, backend=session.compile), x), gradients(model, model, x))
    forward, backward = kinds(session, 0), kinds(session, 1)
    assert forward["tilewise.conv.default"] == 3 and forward["tilewise.conv_backward_data.default"] == 1
    assert backward["tilewise.conv_backward_data.default"] == 3 and backward["tilewise.conv_backward_weight.default"] == 4
    assert backward["tilewise.conv.default"] == 1 and backward["aten.convolution_backward.default"] == 0


def test_gradients_of_much_output_padding() -> None:
    model = nn.Sequential(nn.ConvTranspose2d(4, 3, 3, dilation=3, output_padding=2)).to(DEVICE)
    x = torch.randn(2, 4, 6, 6, device=DEVICE)
    session = Session(compiler="eager")
    assert_same(gradients(model, torch.compile(model, backend=session.compile), x), gradients(model, model, x))
    assert kinds(session, 1)["aten.convolution_backward.default"] == 1


def test_gradients_of_linear_layers() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(DEVICE), torch.randn(3, 5, 8, device=DEVICE)
    session = Session(compiler="eager")
    assert_same(gradients(model, torch.compile(model, backend=session.compile), x), gradients(model, model, x))
    assert kinds(session, 0)["tilewise.linear.default"] == 2
    backward = kinds(session, 1)
    assert backward["tilewise.gemm.default"] + backward["tilewise.linear.default"] == 4
    assert backward["aten.mm.default"] == 0


def test_dynamic_batches_train() -> None:
    torch.manual_seed(0)
    model = Convolutions().to(DEVICE)
    compiled = torch.compile(model, backend="tilewise", dynamic=True, options={"compiler": "eager"})
    for batch in (2, 3):
        x = torch.randn(batch, 3, 12, 16, device=DEVICE)
        assert_same(gradients(model, compiled, x), gradients(model, model, x))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small"])
def test_vision_model_trains(name: str) -> None:
    model = graph_models.vision(name).train()
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    other, x = copy.deepcopy(model), torch.randn(4, 3, 64, 64, device=DEVICE)
    compiled = torch.compile(other, backend="tilewise", options={"compiler": "eager"})
    have, want = gradients(other, compiled, x), gradients(model, model, x)
    assert_same(have, want, 1e-2)
    for one, two in zip(other.buffers(), model.buffers()):  # running statistics follow
        assert torch.allclose(one, two, atol=1e-4)


# ---- Inductor --------------------------------------------------------------------------------------------------------


def test_inductor_compiles_both_directions() -> None:
    model, x = graph_models.residual(), torch.randn(2, 3, 16, 16, device=DEVICE)
    with torch.no_grad():
        assert torch.allclose(torch.compile(model, backend="tilewise")(x), model(x), atol=1e-5)
    model.train()
    other = copy.deepcopy(model)
    assert_same(gradients(other, torch.compile(other, backend="tilewise"), x), gradients(model, model, x))


def test_graphs_take_the_strides_of_their_inputs() -> None:
    """Inductor may lay out what a forward graph keeps otherwise than the joint graph was traced."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    with FakeTensorMode():
        traced, given = torch.empty(4, 7, 16, device=DEVICE), torch.empty_strided((4, 7, 16), (16, 64, 1), device=DEVICE)
        module = make_fx(lambda x: (x.sin(),))(traced)
        session = Session(compiler="eager")
        session._compile_graph(module, [given])
    x, = session.graphs[0].graph.find_nodes(op="placeholder")
    assert x.meta["val"].stride() == (16, 64, 1)
