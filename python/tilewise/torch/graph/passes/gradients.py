# SPDX-License-Identifier: MIT
"""aten.convolution_backward as tilewise.conv_backward_data and conv_backward_weight, and a sum for the bias."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from ..rewriting import Rewriting, is_call, ops, value, why_not
from .convolutions import spread, why_not_transposed

aten = torch.ops.aten


def run(graph: Rewriting) -> None:
    for node in graph.graph.find_nodes(op="call_function", target=aten.convolution_backward.default):
        layer = graph.layer_of(node.args[2], node)
        why = why_not(*node.args[:3]) or why_not_transposed(*node.args[4:9])
        if why is not None:
            graph.left[layer] = why
        elif all(is_call(user, operator.getitem) for user in node.users) and graph.may_rewrite(layer):
            graph.done[layer] = "gradients of conv"
            _rewrite(graph, node, layer)


def _rewrite(graph: Rewriting, node: fx.Node, layer: str) -> None:
    dy, x, weight, _bias_sizes, stride, padding, dilation, transposed, _more, groups, _mask = node.args
    dims = value(x).dim() - 2
    stride, padding, dilation = (spread(given, dims) for given in (stride, padding, dilation))
    geometry = (stride, padding, padding, dilation, groups)

    def sizes(of: Any) -> list[Any]:
        return [graph.size(of, dim, node) for dim in range(2, dims + 2)]

    for part in list(node.users):
        if part.args[1] == 0 and transposed:
            new = graph.call(ops.conv.default, dy, weight, None, None, *geometry, "", like=part)
        elif part.args[1] == 0:
            new = graph.call(ops.conv_backward_data.default, dy, weight, None, sizes(x), *geometry, "", like=part)
        elif part.args[1] == 1:
            image, gradient = (dy, x) if transposed else (x, dy)
            new = graph.call(ops.conv_backward_weight.default, image, gradient, sizes(weight), *geometry, like=part)
        else:
            new = graph.call(aten.sum.dim_IntList, dy, [0, *range(2, dims + 2)], like=part)
        new.meta["layer"] = layer
        graph.replace(part, new)
    graph.graph.erase_node(node)
