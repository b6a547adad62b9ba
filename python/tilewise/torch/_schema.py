# SPDX-License-Identifier: MIT
# mypy: disable-error-code="no-untyped-call,no-any-return"
"""The ops of tilewise.torch: their schemas, defined once, and what their results look like (fake kernels), whoever computes
them: _ops.py in Python, or the C++ ops in its place.

Tensors of a convolution are N, C, sizes as everywhere in torch. A result has the memory format that torch's own op gives
it: channels-last where one of the operands is, contiguous otherwise.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_GEOMETRY = "SymInt[] stride, SymInt[] before, SymInt[] after, SymInt[] dilation, SymInt groups"
SCHEMAS = {
    "gemm": "(Tensor a, Tensor b, str layout, Tensor? bias, str activation) -> Tensor",
    "linear": "(Tensor x, Tensor weight, Tensor? bias, Tensor? d, str activation) -> Tensor",
    "conv": f"(Tensor x, Tensor w, Tensor? bias, Tensor? d, {_GEOMETRY}, str activation) -> Tensor",
    "conv_backward_data": f"(Tensor dy, Tensor w, Tensor? bias, SymInt[] input_size, {_GEOMETRY}, str activation) -> Tensor",
    "conv_backward_weight": f"(Tensor x, Tensor dy, SymInt[] filter_size, {_GEOMETRY}) -> Tensor",
}
_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)

definitions = torch.library.Library("tilewise", "DEF")
for _name, _signature in SCHEMAS.items():
    definitions.define(_name + _signature, tags=_TAGS)

# ---- shapes and memory formats ---------------------------------------------------------------------------------------


def is_channels_last(x: torch.Tensor) -> bool:
    """As torch decides it, from the strides: a tensor for which both formats are the same memory counts as contiguous
    unless its strides are those of channels-last."""
    if x.dim() not in (4, 5):
        return False
    sizes, strides = x.shape, x.stride()
    if strides[1] == 0:
        return False
    least: Any = 0
    for i in (1, *range(x.dim() - 1, 1, -1), 0):
        if sizes[i] == 0 or strides[i] < least or (i == 0 and least == strides[1]):
            return False
        least = strides[i] * sizes[i] if sizes[i] > 1 else strides[i]
    return True


def memory_format(*operands: torch.Tensor) -> torch.memory_format:
    """Of a result, as torch's convolutions choose it: channels-last if one of the operands is."""
    if not any(is_channels_last(x) for x in operands):
        return torch.contiguous_format
    return torch.channels_last if operands[0].dim() == 4 else torch.channels_last_3d


def stored(letter: str, rows: Any, columns: Any) -> tuple[Any, Any]:
    """The shape of a matrix in memory by its letter of a layout; also the other way round."""
    return (rows, columns) if letter == "r" else (columns, rows)


def gemm_shape(a: torch.Tensor, b: torch.Tensor, layout: str) -> list[Any]:
    m = stored(layout[0], a.size(-2), a.size(-1))[0]
    n = stored(layout[1], b.size(-2), b.size(-1))[1]
    batch = list(a.shape[:-2]) if a.dim() >= b.dim() else list(b.shape[:-2])
    if a.dim() == 3 and b.dim() == 3 and a.size(0) == 1:
        batch = [b.size(0)]
    return [*batch, *stored(layout[2], m, n)]


def conv_shape(x: torch.Tensor, w: torch.Tensor, stride: Sequence[Any], before: Sequence[Any], after: Sequence[Any],
               dilation: Sequence[Any]) -> list[Any]:
    # The library cannot be asked: sizes may be symbols here.
    rooms = [size + low + high - step * (taps - 1) - 1 for size, low, high, step, taps in
             zip(x.shape[2:], before, after, dilation, w.shape[2:])]
    if not all(room >= 0 for room in rooms):
        raise RuntimeError(f"conv: x {tuple(x.shape)} with padding {list(before)}, {list(after)} is smaller than the "
                           f"filter {tuple(w.shape[2:])} with dilation {list(dilation)}")
    return [x.size(0), w.size(0), *(room // jump + 1 for room, jump in zip(rooms, stride))]


def empty(like: torch.Tensor, shape: Sequence[Any], *operands: torch.Tensor) -> torch.Tensor:
    """Of like's type and device, in the memory format that follows from the operands."""
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=memory_format(*operands))


# ---- fake kernels ----------------------------------------------------------------------------------------------------


def _gemm(a: torch.Tensor, b: torch.Tensor, layout: str, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    return a.new_empty(gemm_shape(a, b, layout))


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, d: torch.Tensor | None,
            activation: str) -> torch.Tensor:
    return x.new_empty([*x.shape[:-1], weight.size(0)])


def _conv(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, d: torch.Tensor | None, stride: Sequence[Any],
          before: Sequence[Any], after: Sequence[Any], dilation: Sequence[Any], groups: Any,
          activation: str) -> torch.Tensor:
    return empty(x, conv_shape(x, w, stride, before, after, dilation), x, w)


def _conv_backward_data(dy: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, input_size: Sequence[Any],
                        stride: Sequence[Any], before: Sequence[Any], after: Sequence[Any], dilation: Sequence[Any],
                        groups: Any, activation: str) -> torch.Tensor:
    return empty(dy, [dy.size(0), w.size(1) * groups, *input_size], dy, w)


def _conv_backward_weight(x: torch.Tensor, dy: torch.Tensor, filter_size: Sequence[Any], stride: Sequence[Any],
                          before: Sequence[Any], after: Sequence[Any], dilation: Sequence[Any],
                          groups: Any) -> torch.Tensor:
    return empty(x, [dy.size(1), x.size(1) // groups, *filter_size], x, dy)


for _name, _fake in (("gemm", _gemm), ("linear", _linear), ("conv", _conv), ("conv_backward_data", _conv_backward_data),
                     ("conv_backward_weight", _conv_backward_weight)):
    torch.library.register_fake(f"tilewise::{_name}", _fake, lib=definitions)
