# SPDX-License-Identifier: MIT
"""aten.mm and aten.addmm as tilewise.linear, with the dimensions that a view has merged before and parts afterwards, or as
tilewise.gemm where an operand is transposed otherwise."""
from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..rewriting import Rewriting, is_call, only_user, ops, same_sizes, value, why_not

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default)


def run(graph: Rewriting) -> None:
    for node in list(graph.graph.nodes):
        if is_call(node, aten.mm.default, aten.addmm.default):
            _visit(graph, node)
        elif is_call(node, ops.linear.default, ops.gemm.default) and "layer" not in node.meta:  # tilewise's already
            node.meta["layer"] = graph.layer_of(node.args[1], node)
            graph.done[node.meta["layer"]] = "linear" if node.target is ops.linear.default else "gemm"


def _stored(matrix: fx.Node) -> tuple[fx.Node, bool]:
    """A matrix as it lies in memory, and whether the product takes it transposed."""
    if is_call(matrix, aten.t.default) or (is_call(matrix, aten.permute.default) and list(matrix.args[1]) == [1, 0]):
        return matrix.args[0], True
    return matrix, False


def _visit(graph: Rewriting, node: fx.Node) -> None:
    bias, a, b = node.args if node.target is aten.addmm.default else (None, *node.args)
    (a, a_turned), (b, b_turned) = _stored(a), _stored(b)
    layer = graph.layer_of(b, node)
    why = why_not(a, b, bias)
    if why is None and bias is not None and not same_sizes(value(bias).shape, value(node).shape[-1:]):
        why = f"what is added has the shape {tuple(value(bias).shape)}; need ({value(node).size(-1)},), a bias"
    if why is None and any(factor != 1 for factor in node.kwargs.values()):
        why = "alpha or beta is not 1"
    if why is not None:
        graph.left[layer] = why
    elif not graph.may_rewrite(layer):
        return
    elif b_turned and not a_turned:
        graph.done[layer] = "linear"
        _linear(graph, node, layer, a, b, bias)
    else:
        graph.done[layer] = "gemm"
        layout = ("c" if a_turned else "r") + ("c" if b_turned else "r") + "r"
        new = graph.call(ops.gemm.default, a, b, layout, bias, "", like=node)
        new.meta["layer"] = layer
        graph.replace(node, new)


def _merges_rows(view: Any) -> bool:
    """Whether it is a view as a matrix that leaves the last dimension alone."""
    return is_call(view, *_VIEWS) and same_sizes(value(view.args[0]).shape[-1:], value(view).shape[-1:])


def _linear(graph: Rewriting, node: fx.Node, layer: str, x: fx.Node, weight: fx.Node, bias: fx.Node | None) -> None:
    if _merges_rows(x):
        x = x.args[0]
    new = graph.call(ops.linear.default, x, weight, bias, None, "", like=node)
    new.meta["layer"] = layer
    after = only_user(node)
    if after is not None and is_call(after, *_VIEWS) and same_sizes(value(after).shape, value(new).shape):
        graph.replace(after, new)
        graph.graph.erase_node(node)
    elif value(new).dim() == 2:
        graph.replace(node, new)
    else:
        flat = graph.call(aten.view.default, new, [-1, value(weight).size(0)], like=node)
        graph.replace(node, flat)
