# SPDX-License-Identifier: MIT
"""A constant factor for each output channel of a linear layer or a convolution, as a layer scale has it: into the weights
and the bias, in fp32."""
from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..rewriting import Rewriting, is_call, only_reader, only_user, ops, value

aten = torch.ops.aten


def run(graph: Rewriting) -> None:
    for product in list(graph.graph.nodes):
        if not is_call(product, ops.linear.default, ops.conv.default):
            continue
        channel = value(product).dim() - 1 if product.target is ops.linear.default else 1
        user = only_reader(product)
        if user is not None and is_call(user, aten.permute.default):
            channel = [dim % value(user).dim() for dim in user.args[1]].index(channel)
            product, user = user, only_user(user)
        if user is not None and is_call(user, aten.mul.Tensor):
            _fold(graph, product, user, channel)


def _fold(graph: Rewriting, scaled: fx.Node, mul: fx.Node, channel: int) -> None:
    product = scaled if "layer" in scaled.meta else scaled.args[0]
    factor = mul.args[1] if mul.args[0] is scaled else mul.args[0]
    x, weight, bias, *rest = product.args
    if rest[-1]:  # the factor follows an activation, through which it does not pass
        return
    if any(node is not None and node not in graph.constants for node in (factor, weight, bias)):
        return
    if value(mul).dtype != value(product).dtype or not _is_for_each_channel(value(factor), value(scaled), channel):
        return
    scale = graph.constants[factor].detach().float().flatten()
    old = graph.constants[weight].detach()
    args = [graph.constant((old.float() * scale.view(-1, *[1] * (old.dim() - 1))).to(old.dtype), weight)]
    shift = None if bias is None else (graph.constants[bias].detach().float() * scale).to(old.dtype)
    args.append(None if shift is None else graph.constant(shift, weight))
    new = graph.call(product.target, x, *args, *rest, like=product)
    graph.done[product.meta["layer"]] += " with its scale"
    graph.replace(product, new)
    graph.replace(mul, new if scaled is product else scaled)


def _is_for_each_channel(factor: Any, result: Any, channel: int) -> bool:
    if factor.dim() > result.dim() or factor.numel() != result.size(channel):
        return False
    sizes = [1] * (result.dim() - factor.dim()) + list(factor.shape)
    return all(size == 1 for dim, size in enumerate(sizes) if dim != channel)
