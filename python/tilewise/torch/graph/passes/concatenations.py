# SPDX-License-Identifier: MIT
"""Concatenations that begin as an earlier one does, as those of DenseNet, take that one's result. Inductor reads a few operands
where they lie, in the kernel of what follows, and copies many of them to one place first.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..rewriting import Rewriting

aten = torch.ops.aten
_MOST = 8  # that Inductor reads where they lie


def run(graph: Rewriting) -> None:
    earlier: dict[tuple[Any, ...], fx.Node] = {}
    for node in graph.graph.find_nodes(op="call_function", target=aten.cat.default):
        operands, dim = tuple(node.args[0]), node.args[1] if len(node.args) > 1 else 0
        longest = max(range(_MOST, len(operands), _MOST - 1), default=None)
        first = earlier.get((dim, *operands[:longest])) if longest is not None else None
        if first is not None:
            node.update_arg(0, [first, *operands[longest:]])
        earlier[dim, *operands] = node
