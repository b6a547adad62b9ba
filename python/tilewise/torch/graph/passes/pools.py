# SPDX-License-Identifier: MIT
"""A mean of windows after a convolution of one tap: the mean first, since the convolution then has fewer positions."""
from __future__ import annotations

import math

import torch
from torch import fx

from ..rewriting import Rewriting, is_call, only_user, ops, value
from .convolutions import spread

aten = torch.ops.aten


def run(graph: Rewriting) -> None:
    for pool in graph.graph.find_nodes(op="call_function", target=aten.avg_pool2d.default):
        conv = pool.args[0]
        if is_call(conv, ops.conv.default) and only_user(conv) is pool and _may_swap(conv, pool):
            x, *rest = conv.args
            small = graph.call(aten.avg_pool2d.default, x, *pool.args[1:], like=pool)
            new = graph.call(ops.conv.default, small, *rest, like=pool)
            new.meta["layer"] = conv.meta["layer"]
            graph.replace(pool, new)
            graph.graph.erase_node(conv)


def _may_swap(conv: fx.Node, pool: fx.Node) -> bool:
    x, weight, _bias, d, stride, before, after, _dilation, _groups, activation = conv.args
    defaults = (None, None, [], 0, False, True, None)
    _x, window, steps, padding, _ceil, _counts_padding, divisor = (*pool.args, *defaults[len(pool.args):])
    if padding not in (0, [0], [0, 0]) or divisor is not None or activation or d is not None:
        return False
    if any(size != 1 for size in (*value(weight).shape[2:], *stride)) or any((*before, *after)):
        return False
    fewer = math.prod(spread(steps or window, 2))
    return fewer > 1 and value(x).size(1) <= fewer * value(conv).size(1)  # more is neither read nor written
