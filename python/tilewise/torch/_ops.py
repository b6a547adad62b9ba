# SPDX-License-Identifier: MIT
# mypy: disable-error-code="untyped-decorator"
"""The torch.library ops: what runs, what its result looks like (for torch.compile), and its gradients, which are made of the
same ops, so that they have gradients as well.

Tensors of a convolution are N, C, sizes as everywhere in torch. Their memory is channels-last, and so is that of results.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import _conv, _gemm

_FLIP = {"r": "c", "c": "r"}
_GEOMETRY = "int[] stride, int[] before, int[] after, int[] dilation, int groups"


def _op(name: str, schema: str) -> Any:
    return torch.library.custom_op(f"tilewise::{name}", mutates_args=(), schema=schema)


def _rows(x: torch.Tensor) -> torch.Tensor:
    """x with its last dimension contiguous and rows that do not overlap: what a kernel can read."""
    good = x.stride(-1) == 1 or x.size(-1) == 1
    return x if good and (x.size(-2) == 1 or x.stride(-2) >= x.size(-1)) else x.contiguous()


# ---- products --------------------------------------------------------------------------------------------------------


@_op("gemm", "(Tensor a, Tensor b, str layout, Tensor? bias, str activation) -> Tensor")
def gemm(a: torch.Tensor, b: torch.Tensor, layout: str, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    with torch.no_grad():  # gradients are recorded around this
        c: torch.Tensor = _gemm.gemm(_rows(a), _rows(b), layout=layout, activation=activation or None,
                                     bias=None if bias is None else bias.contiguous())
        return c


def _stored(letter: str, rows: Any, columns: Any) -> tuple[Any, Any]:
    return (rows, columns) if letter == "r" else (columns, rows)


@gemm.register_fake
def _(a: torch.Tensor, b: torch.Tensor, layout: str, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    m, _k = _stored(layout[0], a.size(-2), a.size(-1))
    _k, n = _stored(layout[1], b.size(-2), b.size(-1))
    batch = list(a.shape[:-2]) if a.dim() >= b.dim() else list(b.shape[:-2])
    if a.dim() == 3 and b.dim() == 3 and a.size(0) == 1:
        batch = [b.size(0)]
    return a.new_empty([*batch, *_stored(layout[2], m, n)])


def _as_shape(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Summed over the batch that an operand was shared by."""
    if gradient.dim() > like.dim():
        return gradient.sum(0)
    return gradient.sum(0, keepdim=True) if like.dim() == 3 and like.size(0) < gradient.size(0) else gradient


def _gemm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, layout, bias, activation = inputs
    ctx.save_for_backward(a, b)
    ctx.layout, ctx.has_bias, ctx.activation = layout, bias is not None, activation


def _refuse_fused(ctx: Any) -> None:
    if ctx.activation:
        raise RuntimeError("a fused activation has no gradient; call tilewise.torch, which fuses none where one is needed")


def _gemm_backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    _refuse_fused(ctx)
    a, b = ctx.saved_tensors
    la, lb, lc = ctx.layout
    da = db = dbias = None
    if ctx.needs_input_grad[0]:
        da = _as_shape(gemm(gradient, b, lc + _FLIP[lb] + la, None, ""), a)
    if ctx.needs_input_grad[1]:
        db = _as_shape(gemm(a, gradient, _FLIP[la] + lc + lb, None, ""), b)
    if ctx.has_bias and ctx.needs_input_grad[3]:
        dbias = gradient.sum([i for i in range(gradient.dim()) if i != gradient.dim() - (1 if lc == "r" else 2)])
    return da, db, None, dbias, None


gemm.register_autograd(_gemm_backward, setup_context=_gemm_setup)

# ---- convolutions ----------------------------------------------------------------------------------------------------
# Geometry travels as lists: stride, padding before and after, dilation.


def _last(x: torch.Tensor) -> torch.Tensor:
    """N, C, sizes as N, sizes, C, without gaps: a view of channels-last memory, a copy of other memory."""
    return x.permute(0, *range(2, x.dim()), 1).contiguous()


def _first(x: torch.Tensor) -> torch.Tensor:
    """Back again, in the same memory."""
    return x.permute(0, x.dim() - 1, *range(1, x.dim() - 1))


def _activations(x: torch.Tensor, groups: int) -> torch.Tensor:
    last = _last(x)
    return last.view(*last.shape[:-1], groups, last.shape[-1] // groups)


def _weights(w: torch.Tensor, groups: int) -> torch.Tensor:
    last = _last(w)
    return last.view(groups, last.shape[0] // groups, *last.shape[1:])


def _geometry(stride: Sequence[int], before: Sequence[int], after: Sequence[int],
              dilation: Sequence[int]) -> dict[str, Any]:
    return {"stride": tuple(stride), "padding": tuple(zip(before, after)), "dilation": tuple(dilation)}


@_op("conv", f"(Tensor x, Tensor w, Tensor? bias, {_GEOMETRY}, str activation) -> Tensor")
def conv(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], before: Sequence[int],
         after: Sequence[int], dilation: Sequence[int], groups: int, activation: str) -> torch.Tensor:
    with torch.no_grad():
        y = _conv.conv_forward(_activations(x, groups), _weights(w, groups), activation=activation or None,
                               bias=None if bias is None else bias.contiguous(),
                               **_geometry(stride, before, after, dilation))
        return _first(y.flatten(-2))


@conv.register_fake
def _(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], before: Sequence[int],
      after: Sequence[int], dilation: Sequence[int], groups: int, activation: str) -> torch.Tensor:
    # The library cannot be asked: sizes may be symbols here.
    sizes = [(size + low + high - step * (taps - 1) - 1) // jump + 1 for size, low, high, step, taps, jump in
             zip(x.shape[2:], before, after, dilation, w.shape[2:], stride)]
    return _first(x.new_empty([x.size(0), *sizes, w.size(0)]))


@_op("conv_backward_data", f"(Tensor dy, Tensor w, SymInt[] input_size, {_GEOMETRY}) -> Tensor")
def conv_backward_data(dy: torch.Tensor, w: torch.Tensor, input_size: Sequence[int], stride: Sequence[int],
                       before: Sequence[int], after: Sequence[int], dilation: Sequence[int],
                       groups: int) -> torch.Tensor:
    with torch.no_grad():
        dx = _conv.conv_backward_data(_activations(dy, groups), _weights(w, groups), input_size=tuple(input_size),
                                      **_geometry(stride, before, after, dilation))
        return _first(dx.flatten(-2))


@conv_backward_data.register_fake
def _(dy: torch.Tensor, w: torch.Tensor, input_size: Sequence[int], stride: Sequence[int], before: Sequence[int],
      after: Sequence[int], dilation: Sequence[int], groups: int) -> torch.Tensor:
    return _first(dy.new_empty([dy.size(0), *input_size, w.size(1) * groups]))


@_op("conv_backward_weight", f"(Tensor x, Tensor dy, SymInt[] filter_size, {_GEOMETRY}) -> Tensor")
def conv_backward_weight(x: torch.Tensor, dy: torch.Tensor, filter_size: Sequence[int], stride: Sequence[int],
                         before: Sequence[int], after: Sequence[int], dilation: Sequence[int],
                         groups: int) -> torch.Tensor:
    with torch.no_grad():
        dw = _conv.conv_backward_weight(_activations(x, groups), _activations(dy, groups),
                                        filter_size=tuple(filter_size), **_geometry(stride, before, after, dilation))
        return _first(dw.flatten(0, 1))


@conv_backward_weight.register_fake
def _(x: torch.Tensor, dy: torch.Tensor, filter_size: Sequence[int], stride: Sequence[int], before: Sequence[int],
      after: Sequence[int], dilation: Sequence[int], groups: int) -> torch.Tensor:
    return _first(x.new_empty([dy.size(1), *filter_size, x.size(1) // groups]))


def _conv_setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, w, bias, *geometry, groups, activation = inputs
    ctx.save_for_backward(x, w)
    ctx.geometry, ctx.groups, ctx.has_bias, ctx.activation = geometry, groups, bias is not None, activation


def _conv_backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    _refuse_fused(ctx)
    x, w = ctx.saved_tensors
    dx = dw = db = None
    if ctx.needs_input_grad[0]:
        dx = conv_backward_data(dy, w, x.shape[2:], *ctx.geometry, ctx.groups)
    if ctx.needs_input_grad[1]:
        dw = conv_backward_weight(x, dy, w.shape[2:], *ctx.geometry, ctx.groups)
    if ctx.has_bias and ctx.needs_input_grad[2]:
        db = dy.sum([0, *range(2, dy.dim())])
    return dx, dw, db, None, None, None, None, None, None


def _pair_setup(ctx: Any, inputs: Any, output: Any) -> None:
    first, second, _size, *geometry, groups = inputs
    ctx.save_for_backward(first, second)
    ctx.geometry, ctx.groups = geometry, groups


def _data_backward(ctx: Any, ddx: torch.Tensor) -> tuple[Any, ...]:
    dy, w = ctx.saved_tensors
    first = conv(ddx, w, None, *ctx.geometry, ctx.groups, "") if ctx.needs_input_grad[0] else None
    second = (conv_backward_weight(ddx, dy, w.shape[2:], *ctx.geometry, ctx.groups)
              if ctx.needs_input_grad[1] else None)
    return first, second, None, None, None, None, None, None


def _weight_backward(ctx: Any, ddw: torch.Tensor) -> tuple[Any, ...]:
    x, dy = ctx.saved_tensors
    first = (conv_backward_data(dy, ddw, x.shape[2:], *ctx.geometry, ctx.groups)
             if ctx.needs_input_grad[0] else None)
    second = conv(x, ddw, None, *ctx.geometry, ctx.groups, "") if ctx.needs_input_grad[1] else None
    return first, second, None, None, None, None, None, None


conv.register_autograd(_conv_backward, setup_context=_conv_setup)
conv_backward_data.register_autograd(_data_backward, setup_context=_pair_setup)
conv_backward_weight.register_autograd(_weight_backward, setup_context=_pair_setup)
