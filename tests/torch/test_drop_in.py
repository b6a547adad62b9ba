# SPDX-License-Identifier: MIT
"""What people do with models goes on working after replace: saving, copying, tracing, compiling, checkpoints, distributed
training.
"""
import copy
import io
import pickle
import warnings

import pytest
import tilewise.torch as tt
import torch
import torch.distributed
import torch.nn.functional as F
from against_torch import DEVICE, assert_close, gradients, make
from torch import nn
from torch.utils.checkpoint import checkpoint

on_cpu = pytest.mark.skipif(DEVICE != "cpu", reason="is the same on every device")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.last = nn.Linear(4, 5)

    def forward(self, x):
        x = self.up(F.relu_(self.depthwise(F.relu(self.first(x)))))
        return self.last(x.view(x.size(0), 4, -1).mean(2))


@pytest.fixture
def models(convolutions):
    """The same model replaced and as it was."""
    theirs = Net().to(DEVICE)
    ours = copy.deepcopy(theirs)
    tt.replace(ours)
    return ours, theirs


@pytest.fixture
def x():
    return make(2, 3, 8, 8)


def check(ours, theirs, x):
    assert_close(ours(x), theirs(x))
    want = gradients(theirs, x)
    for name, gradient in gradients(ours, x).items():
        assert_close(gradient, want[name.removeprefix("_orig_mod.").removeprefix("module.")])


def test_copies_and_pickles(models, x):
    ours, theirs = models
    with torch.no_grad():
        ours.eval()(x.contiguous(memory_format=torch.channels_last))
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), torch.load(file, weights_only=False)):
        assert type(other.first) is tt.Conv2d
        assert [value.stride() for value in other.parameters()] == [value.stride() for value in theirs.parameters()]
        check(other, theirs, x)
        with torch.no_grad():
            other.first.weight.zero_()
            assert not torch.equal(other(x), ours(x))


def test_state_dicts_and_safetensors(models, x, tmp_path):
    from safetensors.torch import load_model, save_model
    ours, theirs = models
    assert list(ours.state_dict()) == list(theirs.state_dict())
    save_model(ours, str(tmp_path / "model.safetensors"))
    other = Net().to(DEVICE)
    load_model(other, str(tmp_path / "model.safetensors"))
    check(ours, other, x)
    with torch.no_grad():
        for value in other.parameters():
            value.mul_(2)
    ours.load_state_dict(other.state_dict())
    check(ours, other, x)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(models, x, reentrant):
    ours, theirs = models
    x.requires_grad_()
    want = gradients(theirs, x)
    have = gradients(lambda_model(ours, lambda x: checkpoint(ours, x, use_reentrant=reentrant)), x)
    for name, gradient in have.items():
        assert_close(gradient, want[name])


def lambda_model(model, call):
    """A model that is called in another way."""
    class Called:
        def __call__(self, x):
            return call(x)

        zero_grad, named_parameters = staticmethod(model.zero_grad), staticmethod(model.named_parameters)

    return Called()


def test_gradients_of_gradients(models, x):
    def penalty(model):
        model.zero_grad()
        image = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(image).pow(2).sum(), image, create_graph=True)
        gradient.pow(2).sum().backward()
        return [value.grad for value in model.parameters() if value.grad is not None]

    for have, want in zip(*map(penalty, models)):
        assert_close(have, want)


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9)])
def test_training(models, x, optimizer):
    losses = []
    for model in models:
        step = optimizer(model.parameters())
        losses.append([])
        for _ in range(5):
            step.zero_grad()
            loss = (model(x) - 1).pow(2).mean()
            loss.backward()
            step.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-3) and losses[0][-1] < losses[0][0]


@on_cpu
def test_distributed_data_parallel(models, x, tmp_path):
    ours, theirs = models
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        check(nn.parallel.DistributedDataParallel(ours), theirs, x)
        check(nn.parallel.DistributedDataParallel(ours, gradient_as_bucket_view=True, static_graph=True), theirs, x)
    finally:
        torch.distributed.destroy_process_group()


def test_export(models, x):
    ours, theirs = models
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(ours, (x,), dynamic_shapes=({0: batch},))
    assert "tilewise.conv_backward_data" in str(program.graph) and "aten.convolution" not in str(program.graph)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    other = make(5, 3, 8, 8)
    for loaded in (program, torch.export.load(file)):
        assert_close(loaded.module()(other), theirs(other))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(models, x, dynamic):
    ours, theirs = models
    torch.compiler.reset()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    check(compiled, theirs, x)
    with torch.no_grad():
        assert_close(compiled(x), theirs(x))
    other = make(3, 3, 10, 12)
    assert_close(compiled(other), theirs(other))


def test_compile_in_channels_last(models, x):
    ours, theirs = (nn.Sequential(model.first, nn.ReLU(), model.depthwise) for model in models)
    torch.compiler.reset()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    x = x.contiguous(memory_format=torch.channels_last)
    check(compiled, theirs, x)
    assert compiled(x).stride() == theirs(x).stride()


@on_cpu
@pytest.mark.filterwarnings("ignore")
def test_traces_and_scripts(models, x):
    ours, theirs = models
    traced = torch.jit.trace(ours, x)
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    assert "tilewise::conv" in str(traced.inlined_graph)
    for other in (traced, torch.jit.load(file)):
        assert_close(other(x), theirs(x))
    with pytest.raises(RuntimeError, match="restore"):
        torch.jit.script(ours)
    tt.restore(ours)
    assert torch.equal(torch.jit.script(ours)(x), theirs(x))


@on_cpu
def test_symbolic_traces(models, x):
    ours, theirs = models
    traced = torch.fx.symbolic_trace(ours)
    check(lambda_model(ours, traced), theirs, x)
    from torchvision.models.feature_extraction import create_feature_extractor
    features = create_feature_extractor(ours, ["depthwise", "last"])(x)
    assert_close(features["last"], theirs(x))
    assert_close(features["depthwise"].relu(), F.relu(theirs.depthwise(F.relu(theirs.first(x)))))


@on_cpu
def test_no_warnings(models, x):
    ours, _ = models
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients(ours, x)
        with torch.no_grad():
            ours(x)


def test_threads(models, x):
    """Layers keep nothing that two calls at the same time could disturb."""
    from concurrent.futures import ThreadPoolExecutor
    ours, theirs = models
    ours.eval()
    images = [make(2, 3, 8, 8).contiguous(memory_format=torch.channels_last) for _ in range(16)]

    def run(image):
        with torch.no_grad():
            return ours.first(image)

    with ThreadPoolExecutor(4) as pool:
        for image, have in zip(images, pool.map(run, images)):
            assert_close(have, theirs.first(image))
