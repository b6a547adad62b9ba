# SPDX-License-Identifier: MIT
"""Whether an optimized model computes what the model computes, and if not, which layer is to blame."""
from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn

_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}
# Relative errors that are let through where there is no result of a wider type to compare with.
_WITHOUT_WIDER = {torch.float64: 1e-9, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 5e-2}
_LEAST = 4e-6


@dataclasses.dataclass
class Example:
    """Arguments for a model. It may change them, so each run gets its own."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self, model: Callable[..., Any], dtype: torch.dtype | None = None) -> list[torch.Tensor]:
        """The floating-point tensors that the model returns; of arguments in another type where one is given."""

        def own(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            return x.detach().clone() if dtype is None or not x.is_floating_point() else x.detach().to(dtype, copy=True)

        with torch.no_grad(), torch.random.fork_rng(enabled=True):
            torch.manual_seed(0)
            results = model(*pytree.tree_map(own, self.args), **pytree.tree_map(own, self.kwargs))
            return [x.detach().clone() for x in pytree.tree_leaves(results)
                    if isinstance(x, torch.Tensor) and x.is_floating_point()]


@dataclasses.dataclass
class Reference:
    """What a model computes of an example: as it is, and in a wider type."""

    plain: list[torch.Tensor]
    exact: list[torch.Tensor] | None

    def distance(self, results: Sequence[torch.Tensor]) -> tuple[float, float]:
        """How far results are from the reference, relatively, and how far they may be: the worst of all tensors."""
        if [x.shape for x in results] != [x.shape for x in self.plain]:
            return float("inf"), 0.0
        worst = (0.0, float("inf"))
        for i, (result, plain) in enumerate(zip(results, self.plain)):
            if self.exact is None:
                error, allowed = _error(result, plain), _WITHOUT_WIDER.get(plain.dtype, 1e-1)
            else:
                error = _error(result, self.exact[i])
                allowed = 2 * _error(plain, self.exact[i]) + max(_LEAST, torch.finfo(plain.dtype).eps / 2)
            if error - allowed >= worst[0] - worst[1]:
                worst = (error, allowed)
        return worst

    def agrees(self, results: Sequence[torch.Tensor]) -> bool:
        error, allowed = self.distance(results)
        return error <= allowed


def _error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """The relative distance; infinite where one is a number and the other is none."""
    a, b = result.double(), exact.double()
    if not torch.equal(a.isfinite(), b.isfinite()):
        return float("inf")
    a, b = a.nan_to_num(0, 0, 0), b.nan_to_num(0, 0, 0)
    norm = b.norm().item()
    distance = (a - b).norm().item()
    return distance / norm if norm else distance


def reference(model: nn.Module, example: Example, plain: list[torch.Tensor]) -> Reference:
    """What an optimized model is compared with; `plain` is what the model itself computes of the example."""
    if not plain:
        raise ValueError("optimize: the model returns no floating-point tensor, so that nothing can be checked; pass "
                         "check=False")
    if not all(x.isfinite().any() for x in plain if x.numel()):
        raise ValueError("optimize: the model's own result on the example has no finite values, so that nothing can be "
                         "checked; pass another example, or check=False")
    wider = _WIDER.get(next((x.dtype for x in model.parameters() if x.is_floating_point()), plain[0].dtype))
    if wider is None:
        return Reference(plain, None)
    try:
        exact = example.run(copy.deepcopy(model).to(wider), wider)
    except Exception:  # a model may name its types, or be too large twice: then the tolerance is a fixed one
        return Reference(plain, None)
    fits = [x.shape for x in exact] == [x.shape for x in plain]
    return Reference(plain, exact if fits else None)


def first_to_blame(layers: Sequence[str], differs: Callable[[frozenset[str]], bool]) -> str | None:
    """The first layer with which the results differ, where they differ when all are rewritten; None if that is for another
    reason, because they differ when none is."""
    if differs(frozenset()):
        return None
    good, bad = 0, len(layers)
    while bad - good > 1:
        middle = (good + bad) // 2
        if differs(frozenset(layers[:middle])):
            bad = middle
        else:
            good = middle
    return layers[bad - 1]
