# SPDX-License-Identifier: MIT
"""From arrays to the fields of a convolution problem. Runs once for each kind of operands. The library works out the sizes
that follow from others; here is checked what they leave out: dimensions, and channels and groups against each other.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._arrays import Operand, operand
from ._call import Call, Fields
from ._library import whole

Geometry = tuple[Any, Any, Any, Any]  # stride, padding, dilation, and the size that the operands do not tell


def frozen(value: Any) -> Any:
    """A number, or the sizes of each dimension, as a key: lists become tuples."""
    return tuple(frozen(item) for item in value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _extents(value: Any, name: str, rank: int) -> str:
    """3, or (3, 3), as the problem has it."""
    if isinstance(value, tuple):
        if len(value) != rank:
            raise ValueError(f"{name}: {value} has {len(value)} numbers, the operands have {rank} spatial dimensions; "
                             f"give one number or {rank}")
        return "x".join(str(whole(item, name)) for item in value)
    return str(whole(value, name))


def _padding(value: Any, rank: int) -> str:
    """The same, or a pair (before, after) for each dimension."""
    if not isinstance(value, tuple) or not any(isinstance(item, tuple) for item in value):
        return _extents(value, "padding", rank)
    pairs = [item if isinstance(item, tuple) else (item, item) for item in value]
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"padding: {value}; need a number or a pair (before, after) for each of the {rank} spatial "
                         "dimensions")
    return "x".join(f"{whole(before, 'padding')}:{whole(after, 'padding')}" for before, after in pairs)


class _Tensor:
    """An activation (n, *sizes, g, channels of a group) or the weights (g, k of a group, *sizes, c of a group)."""

    def __init__(self, x: Operand, is_weight: bool):
        rank = len(x.shape) - 3
        form = "(groups, k/groups, *filter, c/groups)" if is_weight else "(images, *sizes, groups, channels/groups)"
        if rank not in (1, 2, 3):
            raise ValueError(f"{x.name}: {len(x.shape)} dimensions {x.shape}; need {form} with 1 to 3 sizes, so 4 to 6"
                             f"{_TORCH_HINT}")
        self.x, self.rank, self.channels = x, rank, x.shape[-1]
        self.groups = x.shape[0] if is_weight else x.shape[-2]
        self.images = x.shape[0]
        self.sizes = x.shape[2:-1] if is_weight else x.shape[1:-2]
        self.filters = x.shape[1]


# Images of torch have as many dimensions as lines of ours, so they are read as those.
_TORCH_HINT = ". For tensors in torch's order (N, C, H, W) there are tilewise.torch.conv1d, conv2d and conv3d"


def _agree(what: str, one: _Tensor, have: int, other: _Tensor, need: int) -> None:
    if have != need:
        hint = _TORCH_HINT if one.rank == other.rank else ""
        raise ValueError(f"{one.x.name} {one.x.shape} has {have} {what}, {other.x.name} {other.x.shape} has {need}; "
                         f"they must be the same{hint}")


class ConvCall(Call):
    """The operands of one convolution: those of the library's a and b, under the caller's names."""

    def __init__(self, op: str, a: Any, b: Any, names: tuple[str, str], out: Any, out_dtype: Any, bias: Any, d: Any,
                 d_op: Any):
        super().__init__(operand(a, names[0]), operand(b, names[1]), out, out_dtype, bias, d, d_op)
        self.op = op

    def fields(self, geometry: Geometry, activation: str | None, beta: bool, math: str, align: int) -> Fields:
        stride, padding, dilation, size = geometry
        b_is_weight = self.op != "conv_bwd_weight"
        a, b = _Tensor(self.a, False), _Tensor(self.b, b_is_weight)
        _agree("spatial dimensions", a, a.rank, b, b.rank)
        _agree("groups", a, a.groups, b, b.groups)
        n, g, rank = a.images, a.groups, a.rank
        if self.op == "conv_fwd":
            _agree("channels in a group", a, a.channels, b, b.channels)
            c, k, inside, taps = a.channels, b.filters, _text(a.sizes), _text(b.sizes)
        elif self.op == "conv_bwd_data":
            _agree("output channels in a group", a, a.channels, b, b.filters)
            c, k, inside, taps = b.channels, b.filters, _extents(size, "input_size", rank), _text(b.sizes)
        else:
            _agree("images", a, n, b, b.images)
            c, k, inside, taps = b.channels, a.channels, _text(b.sizes), _extents(size, "filter_size", rank)
        if rank > 1 and "x" not in inside:  # the problem takes its number of dimensions from `in`
            inside = "x".join([inside] * rank)
        return {"op": self.op, "n": n, "g": g, "c": c * g, "k": k * g, "in": inside, "filter": taps,
                "stride": _extents(stride, "stride", rank), "pad": _padding(padding, rank),
                "dilation": _extents(dilation, "dilation", rank), **self.type_fields(),
                **self.more_fields(activation, beta, math, align)}


def _text(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
