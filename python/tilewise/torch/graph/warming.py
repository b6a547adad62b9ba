# SPDX-License-Identifier: MIT
"""The kernels of a graph, compiled on all cores before it runs for the first time."""
from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
from torch import fx

from ... import _warm
from ..._recording import Recording, recording
from .. import _ops
from .._warm import threads_for
from .rewriting import value


def problems(graph: fx.GraphModule) -> Recording:
    """Those of the library's operations in a graph, for the sizes that it was traced with."""
    with recording() as recorded, torch.no_grad():
        for node in filter(_is_ours, graph.graph.nodes):
            with contextlib.suppress(Exception):  # a size that is not known yet, say; what is wrong is said when it runs
                _ops.KERNELS[node.target._opname](*fx.map_arg(node.args, _like))  # type: ignore[union-attr]
    return recorded


def warm(graph: fx.GraphModule, strategy: str | None, progress: Any) -> None:
    """Compiles what a graph needs on a GPU, on the CPU a built-in kernel serves while a better one is compiled behind it. The
    strategy "measure" measures here, and what is fastest is chosen from then on."""
    if strategy != "measure" and not any(value(node).is_cuda for node in filter(_is_ours, graph.graph.nodes)):
        return
    recorded = problems(graph)
    for device in recorded.devices:
        if strategy == "measure":
            _warm.tune(recorded.problems(device), device=device, seconds=math.inf, threads=threads_for(device),
                       progress=progress)
        else:
            _warm.build(recorded.problems(device), device=device, strategy=strategy, threads=threads_for(device),
                        progress=progress)


def _is_ours(node: fx.Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "_opname", "") in _ops.KERNELS and (
        getattr(node.target, "namespace", None) == "tilewise")


def _like(node: fx.Node) -> Any:
    """An operand of the same kind, with whatever is in it."""
    like = value(node)
    if isinstance(like, torch.Tensor):
        return torch.empty_strided(*(tuple(map(_number, sizes)) for sizes in (like.shape, like.stride())), dtype=like.dtype,
                                   device=like.device)
    return _number(like)


def _number(size: Any) -> Any:
    return size if isinstance(size, int) else int(size.node.hint)
