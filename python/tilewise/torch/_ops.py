# SPDX-License-Identifier: MIT
# mypy: disable-error-code="no-untyped-call,no-any-return"
"""The ops in Python, for tensors of the CPU and of CUDA. They serve unless the C++ ops are there: those destroy
`implementations` and register themselves in its place.

A result is a tensor of its own, never a view, so that what follows may change it in place. Kernels compute convolutions on
channels-last memory: operands and results of another format are copied.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import _conv, _gemm
from . import _choice, _schema
from ._epilogue import activate


def _check_d(activation: str, d: torch.Tensor | None) -> None:
    taken = sum(word in ("add", "mul") for word in activation.split("+"))
    if taken != (d is not None):
        raise ValueError(f"activation: {activation!r} takes {taken} tensors d, {int(d is not None)} given")


def _empty_sum(y: torch.Tensor, bias: torch.Tensor | None, d: torch.Tensor | None, activation: str,
               channels: int) -> torch.Tensor:
    """The result where there is nothing to sum: zeros, and what follows. `channels` is the dimension of the bias."""
    y.zero_()
    if bias is not None:
        y += bias.view([-1 if i == channels % y.dim() else 1 for i in range(y.dim())])
    return y.copy_(activate(y, activation, d))


# ---- products --------------------------------------------------------------------------------------------------------


def _rows(x: torch.Tensor) -> torch.Tensor:
    """x with its last dimension contiguous and rows that do not overlap: what a kernel can read."""
    good = x.stride(-1) == 1 or x.size(-1) == 1
    return x if good and (x.size(-2) == 1 or x.stride(-2) >= x.size(-1)) else x.contiguous()


def _contiguous(x: torch.Tensor | None) -> torch.Tensor | None:
    return None if x is None else x.contiguous()


def gemm(a: torch.Tensor, b: torch.Tensor, layout: str, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    if a.numel() == 0 or b.numel() == 0:
        c = a.new_empty(_schema.gemm_shape(a, b, layout))
        return _empty_sum(c, bias, None, activation, -1 if layout[2] == "r" else -2)
    result: torch.Tensor = _gemm.gemm(_rows(a), _rows(b), layout=layout, activation=activation or None,
                                      bias=_contiguous(bias), **_choice.options("gemm", layout))
    return result


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, d: torch.Tensor | None,
           activation: str) -> torch.Tensor:
    _check_d(activation, d)
    y = x.new_empty([*x.shape[:-1], weight.size(0)])
    if x.numel() == 0 or weight.numel() == 0:
        return _empty_sum(y, bias, d, activation, -1)
    _gemm.gemm(_rows(x.reshape(-1, x.size(-1))), _rows(weight), bias=_contiguous(bias), activation=activation or None,
               d=None if d is None else _rows(d.reshape(-1, d.size(-1))), out=y.view(-1, weight.size(0)),
               **_choice.options("gemm", "rcr"))
    return y


# ---- convolutions ----------------------------------------------------------------------------------------------------


def _last(x: torch.Tensor) -> torch.Tensor:
    """N, C, sizes as N, sizes, C: a view."""
    return x.permute(0, *range(2, x.dim()), 1)


def _images(x: torch.Tensor, groups: int) -> torch.Tensor:
    """N, C, sizes as N, sizes, groups, C/groups, without gaps: a view of channels-last memory, a copy of other memory."""
    return _last(x).contiguous().unflatten(-1, (groups, x.size(1) // groups))


def _filters(w: torch.Tensor, groups: int) -> torch.Tensor:
    return _last(w).contiguous().unflatten(0, (groups, w.size(0) // groups))


def _geometry(stride: Sequence[int], before: Sequence[int], after: Sequence[int],
              dilation: Sequence[int]) -> dict[str, Any]:
    return {"stride": tuple(stride), "padding": tuple(zip(before, after)), "dilation": tuple(dilation)}


def _room(y: torch.Tensor) -> torch.Tensor:
    """Where a kernel writes y, as N, sizes, C: in y itself, or in memory that is copied to y afterwards."""
    last = _last(y)
    return last if last.is_contiguous() else last.new_empty(last.shape)


def _fill(y: torch.Tensor, room: torch.Tensor) -> torch.Tensor:
    if room.data_ptr() != y.data_ptr():
        _last(y).copy_(room)
    return y


def conv(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, d: torch.Tensor | None, stride: Sequence[int],
         before: Sequence[int], after: Sequence[int], dilation: Sequence[int], groups: int,
         activation: str) -> torch.Tensor:
    _check_d(activation, d)
    y = _schema.empty(x, _schema.conv_shape(x, w, stride, before, after, dilation), x, w)
    if x.numel() == 0 or w.numel() == 0 or y.numel() == 0:
        return _empty_sum(y, bias, d, activation, 1)
    room = _room(y)
    _conv.conv_forward(_images(x, groups), _filters(w, groups), bias=_contiguous(bias), activation=activation or None,
                       d=None if d is None else _images(d, groups), out=room.unflatten(-1, (groups, -1)),
                       **_geometry(stride, before, after, dilation), **_choice.options("conv_fwd"))
    return _fill(y, room)


def conv_backward_data(dy: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, input_size: Sequence[int],
                       stride: Sequence[int], before: Sequence[int], after: Sequence[int], dilation: Sequence[int],
                       groups: int, activation: str) -> torch.Tensor:
    dx = _schema.empty(dy, [dy.size(0), w.size(1) * groups, *input_size], dy, w)
    if dy.numel() == 0 or w.numel() == 0 or dx.numel() == 0:
        return _empty_sum(dx, bias, None, activation, 1)
    room = _room(dx)
    _conv.conv_backward_data(_images(dy, groups), _filters(w, groups), input_size=tuple(input_size),
                             bias=_contiguous(bias), activation=activation or None,
                             out=room.unflatten(-1, (groups, -1)), **_geometry(stride, before, after, dilation),
                             **_choice.options("conv_bwd_data"))
    return _fill(dx, room)


def conv_backward_weight(x: torch.Tensor, dy: torch.Tensor, filter_size: Sequence[int], stride: Sequence[int],
                         before: Sequence[int], after: Sequence[int], dilation: Sequence[int],
                         groups: int) -> torch.Tensor:
    dw = _schema.empty(x, [dy.size(1), x.size(1) // groups, *filter_size], x, dy)
    if x.numel() == 0 or dy.numel() == 0 or dw.numel() == 0:
        return dw.zero_()
    room = _room(dw)
    _conv.conv_backward_weight(_images(x, groups), _images(dy, groups), filter_size=tuple(filter_size),
                               out=room.unflatten(0, (groups, -1)), **_geometry(stride, before, after, dilation),
                               **_choice.options("conv_bwd_weight"))
    return _fill(dw, room)


# ---- registration ----------------------------------------------------------------------------------------------------

KERNELS: dict[str, Callable[..., torch.Tensor]] = {
    "gemm": gemm, "linear": linear, "conv": conv, "conv_backward_data": conv_backward_data,
    "conv_backward_weight": conv_backward_weight}
implementations = torch.library.Library("tilewise", "IMPL")
for _name, _kernel in KERNELS.items():
    # Under the key of every device: kernels for the CPU and for CUDA, such as the C++ ops bring, go before.
    implementations.impl(_name, _kernel, "CompositeExplicitAutograd")
