# SPDX-License-Identifier: MIT
"""BatchNorm after a convolution, both with constant parameters: the weights and the bias of one convolution. Computed in
fp32 and rounded once. Any other with constant parameters is a product and a sum."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from ..rewriting import TYPES, Rewriting, is_call, only_reader, only_user, ops, value

aten = torch.ops.aten


def run(graph: Rewriting) -> None:
    for norm in graph.graph.find_nodes(op="call_function", target=aten._native_batch_norm_legit_no_training.default):
        result = only_user(norm)
        if result is not None and is_call(result, operator.getitem) and result.args[1] == 0:
            if not _fold(graph, norm, result):
                _simplify(graph, norm, result)


def _are_constant(graph: Rewriting, *nodes: Any) -> bool:
    return all(node is None or node in graph.constants for node in nodes)


def _scale_and_shift(graph: Rewriting, norm: fx.Node) -> tuple[torch.Tensor, torch.Tensor]:
    _x, *parameters, _momentum, epsilon = norm.args
    return scale_and_shift(*(None if node is None else graph.constants[node].detach() for node in parameters), epsilon)


def _simplify(graph: Rewriting, norm: fx.Node, result: fx.Node) -> None:
    x, *parameters = norm.args[:5]
    layer = graph.layer_of(parameters[-1], norm)
    if not _are_constant(graph, *parameters) or value(x).dtype not in TYPES or not graph.may_rewrite(layer):
        return
    graph.done[layer] = "a product and a sum"
    sizes = [-1, *[1] * (value(x).dim() - 2)]
    scale, shift = (graph.constant(given.view(sizes), parameters[-1]) for given in _scale_and_shift(graph, norm))
    y = graph.call(aten.add.Tensor, graph.call(aten.mul.Tensor, x, scale, like=norm), shift, like=norm)
    if value(y).dtype != value(result).dtype:
        y = graph.call(torch.ops.prims.convert_element_type.default, y, value(result).dtype, like=norm)
    graph.replace(result, y)
    graph.graph.erase_node(norm)


def _fold(graph: Rewriting, norm: fx.Node, result: fx.Node) -> bool:
    conv, gamma, beta, mean, variance, *_ = norm.args
    if not is_call(conv, ops.conv.default, ops.conv_backward_data.default) or only_reader(conv) is not norm:
        return False
    weight, bias, groups, activation = conv.args[1], conv.args[2], *conv.args[-2:]
    transposed = conv.target is ops.conv_backward_data.default
    if activation or (transposed and groups != 1) or not _are_constant(graph, weight, bias, gamma, beta, mean, variance):
        return False
    scale, shift = _scale_and_shift(graph, norm)
    kernel = graph.constants[weight].detach()
    sizes = [1] * kernel.dim()
    sizes[1 if transposed else 0] = -1
    if bias is not None:
        shift = shift + graph.constants[bias].detach().float() * scale
    args = list(conv.args)
    args[1] = graph.constant((kernel.float() * scale.view(sizes)).to(kernel.dtype), weight)
    args[2] = graph.constant(shift.to(kernel.dtype), weight)
    folded = graph.call(conv.target, *args, like=conv)
    graph.done[graph.layer_of(mean, norm)] = f"folded into {conv.meta['layer']}"
    graph.replace(result, folded)
    graph.graph.erase_node(norm)
    graph.replace(conv, folded)
    return True


def scale_and_shift(gamma: Any, beta: Any, mean: torch.Tensor, variance: torch.Tensor,
                    epsilon: float) -> tuple[torch.Tensor, torch.Tensor]:
    """BatchNorm of statistics that are known, as y = x * scale + shift, in fp32."""
    scale = torch.rsqrt(variance.float() + epsilon)
    if gamma is not None:
        scale = scale * gamma.float()
    shift = -mean.float() * scale
    return scale, shift if beta is None else shift + beta.float()
