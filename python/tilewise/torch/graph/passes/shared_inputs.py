# SPDX-License-Identifier: MIT
"""Linear layers of one input, as the query, key and value of attention are, as one product with their constant weights below each
other. Each result is then a view of it, so that only those are taken that nothing but views read.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..order import is_movement
from ..rewriting import Rewriting, is_call, ops, value

aten = torch.ops.aten


def run(graph: Rewriting) -> None:
    groups: dict[Any, list[fx.Node]] = {}
    for node in graph.graph.nodes:
        if is_call(node, ops.linear.default) and _may_share(graph, node):
            x, _weight, bias, *_ = node.args
            groups.setdefault((x, bias is None), []).append(node)
    for nodes in groups.values():
        if len(nodes) > 1:
            _join(graph, nodes)


def _may_share(graph: Rewriting, node: fx.Node) -> bool:
    _x, weight, bias, d, activation = node.args
    if d is not None or activation or weight not in graph.constants or not (bias is None or bias in graph.constants):
        return False
    return all(is_movement(user) and not is_call(user, aten.clone.default) for user in node.users)


def _join(graph: Rewriting, nodes: list[fx.Node]) -> None:
    first = nodes[0]
    x, _weight, bias, *rest = first.args
    weight, shift = (None if first.args[at] is None else graph.constant(
        torch.cat([graph.constants[node.args[at]].detach() for node in nodes]), first.args[at]) for at in (1, 2))
    new = graph.call(ops.linear.default, x, weight, shift, *rest, like=first)
    new.meta["layer"] = first.meta["layer"]
    parts, start, dim = [], 0, value(new).dim() - 1
    for node in nodes:
        end = start + value(node).size(dim)
        parts.append(graph.call(aten.slice.Tensor, new, dim, start, end, like=first))
        start = end
    for node, part in zip(nodes, parts):
        graph.done[node.meta["layer"]] += f", one of {len(nodes)} in a product"
        graph.replace(node, part)
