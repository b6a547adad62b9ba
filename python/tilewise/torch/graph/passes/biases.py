# SPDX-License-Identifier: MIT
"""A vector that is added to each row of a product, as its bias. torch computes linear layers so where their input is not
contiguous."""
from __future__ import annotations

import torch
from torch import fx

from ..rewriting import Rewriting, is_call, only_reader, ops, same_sizes, value, why_not

aten = torch.ops.aten


def run(graph: Rewriting) -> None:
    for node in list(graph.graph.nodes):
        if is_call(node, ops.linear.default) and node.args[2] is None and not node.args[-1]:
            _visit(graph, node)


def _visit(graph: Rewriting, node: fx.Node) -> None:
    user = only_reader(node)
    if user is None or not is_call(user, aten.add.Tensor) or user.kwargs or len(node.users) > 1:
        return
    bias = user.args[1] if user.args[0] is node else user.args[0]
    if bias is node or why_not(node, bias) is not None or not same_sizes(value(bias).shape, value(node).shape[-1:]):
        return
    x, weight, _none, *rest = node.args
    new = graph.call(node.target, x, weight, bias, *rest, like=user)
    new.meta["layer"] = node.meta["layer"]
    graph.replace(user, new)
    graph.graph.erase_node(node)
