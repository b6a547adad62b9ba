# SPDX-License-Identifier: MIT
"""What tilewise.torch.optimize makes of what lies between products: copies that reorder memory, biases added apart, nested
concatenations, BatchNorm that no convolution comes before, means after convolutions.
"""
from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

import graph_models  # noqa: E402
from against_torch import DEVICE  # noqa: E402
from torch import nn  # noqa: E402

import tilewise.torch as tt  # noqa: E402
from tilewise.torch.graph import lowering  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Graphs as Inductor gets them, though nothing compiles them."""
    torch._dynamo.reset()
    monkeypatch.setattr(lowering, "_ONE_LOOP", ())
    yield


def optimize(model: nn.Module, *inputs: Any) -> tuple[tt.Optimized, list[collections.Counter[str]]]:
    """The model optimized, held to the model for the inputs and for another batch, and what is in both graphs."""
    model = model.to(DEVICE).eval()
    optimized = tt.optimize(model, *inputs, compiler="eager")
    with torch.no_grad():
        for given in (inputs, [torch.cat([x, x[:1]]) for x in inputs]):
            have, want = optimized(*given), model(*given)
            assert torch.allclose(have, want, atol=1e-5) and have.stride() == want.stride()
    return optimized, [collections.Counter(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
                       for graph in optimized.graphs]


class Attention(nn.Module):
    """As in torchvision's transformers: batch first outside, sequence first inside."""

    def __init__(self, **options: Any):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, **options)
        self.after = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return self.after(x + self.attention(y, y, y, need_weights=False)[0])


@pytest.mark.parametrize("options", [{}, {"bias": False}])
def test_attention_copies_nothing(options: dict[str, Any]) -> None:
    optimized, graphs = optimize(Attention(**options), torch.randn(3, 5, 8, device=DEVICE))
    for found in graphs:
        assert found["aten.clone.default"] == 0
        assert found["aten.add.Tensor"] == 2  # the normalization's
    assert optimized.report.replaced["attention.out_proj"] == "linear + add"


class Turned(nn.Module):
    """A product of rows that lie in another order, once where a view parts them again and once where none can."""

    def __init__(self, parts: bool):
        super().__init__()
        self.layer, self.parts = nn.Linear(6, 4), parts

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.transpose(0, 1).reshape(-1, 6)
        y = self.layer(rows)
        return y.view(x.size(1), x.size(0), 4).transpose(0, 1).tanh().flatten(1) if self.parts else y.tanh()


@pytest.mark.parametrize("parts", [False, True])
def test_rows_are_taken_as_they_lie(parts: bool) -> None:
    optimized, graphs = optimize(Turned(parts), torch.randn(3, 5, 6, device=DEVICE))
    for graph in optimized.graphs:
        product = next(node for node in graph.graph.nodes if "tilewise" in str(node.target))
        assert product.args[0].meta["val"].is_contiguous()
    if parts:
        assert optimized.report.replaced == {"layer": "linear + tanh"}
        assert all(found["aten.clone.default"] == 0 for found in graphs)


class Transposed(nn.Module):
    """Columns are no rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.transpose(1, 2).contiguous()) + self.layer.bias.sum()


def test_columns_stay_copied() -> None:
    optimize(Transposed(), torch.randn(3, 5, 6, device=DEVICE))


def test_dense_blocks() -> None:
    torch.manual_seed(0)
    model = graph_models.randomize(torchvision.models.DenseNet(8, (10, 2), 8, num_classes=5))
    optimized, graphs = optimize(model, torch.randn(2, 3, 32, 32, device=DEVICE))
    for graph, found in zip(optimized.graphs, graphs):
        joined = [len(node.args[0]) for node in graph.graph.nodes if node.target is torch.ops.aten.cat.default]
        assert len(joined) == 12 and max(joined) == 8
        assert found["aten._native_batch_norm_legit_no_training.default"] == 0
        assert found["aten.clone.default"] == 1  # of the image
        pool = next(node for node in graph.graph.nodes if node.target is torch.ops.aten.avg_pool2d.default)
        assert optimized.report.replaced["features.norm5"] == "a product and a sum"
        assert "relu" in pool.args[0].name  # before the convolution, whose result has a quarter of the positions


@pytest.mark.parametrize("options", [{"padding": 1}, {"divisor_override": 3}, {"stride": 1}])
def test_means_that_do_not_commute_stay(options: dict[str, int]) -> None:
    model = nn.Sequential(nn.Conv2d(4, 4, 1), nn.AvgPool2d(2, **options))
    optimized, _ = optimize(model, torch.randn(2, 4, 6, 6, device=DEVICE))
    order = [str(node.target) for node in optimized.graphs[0].graph.nodes if node.op == "call_function"]
    assert order.index("tilewise.linear.default") < order.index("aten.avg_pool2d.default")


class Heads(nn.Module):
    """Attention with layers of their own for query, key and value; `scaled`: one of them is not only viewed."""

    def __init__(self, scaled: bool):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
        self.scaled = scaled

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (layer(x).view(*x.shape[:2], 2, -1).transpose(1, 2) for layer in (self.query, self.key, self.value))
        return nn.functional.scaled_dot_product_attention(query * self.query.bias[:4] if self.scaled else query, key, value)


@pytest.mark.parametrize("scaled", [False, True])
def test_layers_of_one_input_are_one_product(scaled: bool) -> None:
    optimized, graphs = optimize(Heads(scaled), torch.randn(3, 5, 8, device=DEVICE))
    assert [found["tilewise.linear.default"] for found in graphs] == [1, 1]
    assert optimized.report.replaced["value"] == "linear, one of 3 in a product"


class Gated(nn.Module):
    """Of layers with an epilogue, or what reads more than a view, each stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(self.gate(x)) * self.up(x)


def test_gates_stay_in_the_epilogue() -> None:
    optimized, _ = optimize(Gated(), torch.randn(3, 8, device=DEVICE))
    assert optimized.report.replaced == {"gate": "linear + silu + mul", "up": "linear"}
