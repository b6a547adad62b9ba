# SPDX-License-Identifier: MIT
"""Activations, residual sums and products that follow a linear layer or a convolution, as its epilogue."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ....problem import Problem
from ...._library import TilewiseError
from ..rewriting import Rewriting, is_call, only_reader, only_user, ops, same_sizes, value

aten = torch.ops.aten


def _gelu(node: fx.Node) -> str:
    return "gelu_tanh" if node.kwargs.get("approximate", "none") == "tanh" else "gelu"


def _hardtanh(node: fx.Node) -> str | None:
    return "relu6" if tuple(node.args[1:3]) == (0, 6) else None


# ATen's activations in the library's words.
_WORDS: dict[Any, Callable[[fx.Node], str | None]] = {
    aten.relu.default: lambda node: "relu", aten.silu.default: lambda node: "silu",
    aten.sigmoid.default: lambda node: "sigmoid", aten.tanh.default: lambda node: "tanh",
    aten.hardswish.default: lambda node: "hardswish", aten.gelu.default: _gelu, aten.hardtanh.default: _hardtanh}
_COMBINATIONS = {aten.add.Tensor: "add", aten.mul.Tensor: "mul"}
_PRODUCTS = (ops.linear.default, ops.conv.default, ops.conv_backward_data.default, ops.gemm.default)
_TAKES_D = (ops.linear.default, ops.conv.default)


@functools.cache
def _is_known(epilogue: str) -> bool:
    """Whether the library has such an epilogue."""
    try:
        Problem(f"gemm:m=8,n=8,k=8,dtype=fp32,epilogue=bias+{epilogue}")
    except TilewiseError:
        return False
    return True


def run(graph: Rewriting) -> None:
    for node in list(graph.graph.nodes):
        if is_call(node, *_PRODUCTS):
            while (fused := _fuse_next(graph, node)) is not None:
                node = fused
            if node.args[-1]:
                graph.done[node.meta["layer"]] += " + " + node.args[-1].replace("+", " + ")


def _fuse_next(graph: Rewriting, node: fx.Node) -> fx.Node | None:
    """The node with the only operation that uses it, None where that is none for an epilogue."""
    user, used, order = only_reader(node), node, None
    if user is not None and node.target in _TAKES_D and is_call(user, aten.permute.default):
        order = [dim % value(node).dim() for dim in user.args[1]]
        used, user = user, only_user(user)
    if user is None or user.op != "call_function":
        return None
    if not isinstance(value(user), torch.Tensor) or value(user).dtype != value(node).dtype:
        return None
    word, d = _as_epilogue(node, used, user)
    if word is None or (d is not None and len(node.users) > 1):  # sizes may be asked for before d is there
        return None
    epilogue = "+".join(filter(None, (node.args[-1], word)))
    if not _is_known(epilogue):
        return None
    args = list(node.args)
    args[-1] = epilogue
    if d is not None:
        args[3] = d if order is None else graph.call(aten.permute.default, d, _inverse(order), like=user)
    fused = graph.call(node.target, *args, like=node if d is None else user)
    fused.meta["layer"] = node.meta["layer"]
    graph.replace(user, fused if order is None else graph.call(aten.permute.default, fused, order, like=user))
    if order is not None:
        graph.graph.erase_node(used)
    graph.replace(node, fused)
    return fused


def _as_epilogue(node: fx.Node, used: fx.Node, user: fx.Node) -> tuple[str | None, fx.Node | None]:
    """The library's word for what the user does, and the tensor that it takes."""
    if user.target in _WORDS:
        return _WORDS[user.target](user), None
    if user.target not in _COMBINATIONS or node.target not in _TAKES_D or node.args[3] is not None or user.kwargs:
        return None, None
    d = user.args[1] if user.args[0] is used else user.args[0]
    like = value(d)
    if d is used or not isinstance(like, torch.Tensor) or like.dtype != value(node).dtype:
        return None, None
    return (_COMBINATIONS[user.target], d) if same_sizes(like.shape, value(used).shape) else (None, None)


def _inverse(order: list[int]) -> list[int]:
    return [order.index(dim) for dim in range(len(order))]
