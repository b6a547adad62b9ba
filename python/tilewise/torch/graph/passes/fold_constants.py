# SPDX-License-Identifier: MIT
"""What is computed of constants alone, such as weights cast by autocast or scaled by a parametrization: computed once, here."""
from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..rewriting import Rewriting, value


def run(graph: Rewriting) -> None:
    for node in list(graph.graph.nodes):
        if _may_fold(graph, node):
            known = fx.map_arg((node.args, node.kwargs), lambda given: graph.constants[given].detach())
            graph.replace(node, graph.constant(node.target(*known[0], **known[1]), node.all_input_nodes[0]))


def _may_fold(graph: Rewriting, node: fx.Node) -> bool:
    """Views stay: passes look for transposed weights. So does what has more elements than it is made of."""
    result: Any = value(node)
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    if not node.all_input_nodes or any(given not in graph.constants for given in node.all_input_nodes):
        return False
    if not isinstance(result, torch.Tensor) or torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    makes_new = all(returned.alias_info is None for returned in node.target._schema.returns)
    return makes_new and result.numel() <= max(value(given).numel() for given in node.all_input_nodes)
