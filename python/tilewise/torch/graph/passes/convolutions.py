# SPDX-License-Identifier: MIT
"""aten.convolution as tilewise.conv, and the transposed one as tilewise.conv_backward_data."""
from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..rewriting import Rewriting, is_call, ops, value, why_not

aten = torch.ops.aten


def spread(sizes: Any, dims: int) -> list[Any]:
    return list(sizes) * dims if len(sizes) == 1 else list(sizes)


def why_not_transposed(stride: Any, _padding: Any, _dilation: Any, transposed: bool, more: Any) -> str | None:
    """Why no convolution has a transposed one of this output_padding as its gradient: it would make more than its input."""
    dims = max(len(stride), len(more))
    if transposed and any(extra >= jump for extra, jump in zip(spread(more, dims), spread(stride, dims))):
        return f"output_padding is {list(more)}; need less than the stride {list(stride)}"
    return None


def run(graph: Rewriting) -> None:
    for node in graph.graph.nodes:
        if is_call(node, ops.conv.default, ops.conv_backward_data.default):  # of a layer that is tilewise's already
            node.meta["layer"] = graph.layer_of(node.args[1], node)
            graph.done[node.meta["layer"]] = _kind(node.target is ops.conv_backward_data.default)
    for node in graph.graph.find_nodes(op="call_function", target=aten.convolution.default):
        layer = graph.layer_of(node.args[1], node)
        why = why_not(*node.args[:3]) or why_not_transposed(*node.args[3:8])
        if why is not None:
            graph.left[layer] = why
        elif graph.may_rewrite(layer):
            graph.done[layer] = _rewrite(graph, node)


def _rewrite(graph: Rewriting, node: fx.Node) -> str:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = node.args
    dims = value(x).dim() - 2
    stride, padding, dilation, more = (spread(given, dims) for given in (stride, padding, dilation, output_padding))
    if not transposed:
        new = graph.call(ops.conv.default, x, weight, bias, None, stride, padding, padding, dilation, groups, "",
                         like=node)
    else:
        taps = value(weight).shape[2:]
        sizes = [graph.sum_of_products(node, graph.size(x, i + 2, node), stride[i],
                                       dilation[i] * (taps[i] - 1) + 1 + more[i] - 2 * padding[i] - stride[i])
                 for i in range(dims)]
        new = graph.call(ops.conv_backward_data.default, x, weight, bias, sizes, stride, padding, padding, dilation,
                         groups, "", like=node)
    new.meta["layer"] = graph.layer_of(weight, node)
    graph.replace(node, new)
    return _kind(transposed)


def _kind(transposed: bool) -> str:
    return "conv_transpose" if transposed else "conv"
