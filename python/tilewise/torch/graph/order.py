# SPDX-License-Identifier: MIT
"""In which order a result of views, permutations and copies has the elements of what it is made of."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from .rewriting import is_call, value

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.squeeze.dim, aten.squeeze.dims,
          aten.unsqueeze.default)


def is_movement(node: Any) -> bool:
    return is_call(node, *_VIEWS, aten.permute.default, aten.select.int, aten.clone.default)


def size_of(size: Any) -> Any:
    """A size or stride as a number, or as an expression of symbols: comparing those adds no guard."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    return int(expression) if expression.is_Integer else expression


def _quotient(size: Any, part: Any) -> Any:
    """size / part; None where that is no whole number, or not known to be one."""
    if isinstance(size, int) and isinstance(part, int):
        return size // part if part and size % part == 0 else None
    import sympy
    quotient = sympy.cancel(sympy.sympify(size) / part)
    if not quotient.is_integer:
        return None
    return int(quotient) if quotient.is_Integer else quotient


@dataclasses.dataclass(frozen=True, eq=False)
class Axis:
    """A dimension of a tensor, or a factor of one, with more than one element."""

    size: Any
    stride: Any


def _replaced(axes: Sequence[Axis], old: Sequence[Axis], new: Sequence[Axis]) -> tuple[Axis, ...]:
    """Axes that follow each other as others."""
    for at, axis in enumerate(axes):
        if axis is old[0]:
            return (*axes[:at], *new, *axes[at + len(old):])
    return tuple(axes)


@dataclasses.dataclass(frozen=True)
class Moved:
    """The elements of `base` in another order.

    axes    of the base, in its order
    taken   those of which one index was selected
    dims    of the result, each of some axes; without one it has one element
    copied  whether there was a copy on the way
    """

    base: fx.Node
    axes: tuple[Axis, ...]
    taken: dict[Axis, int]
    dims: tuple[tuple[Axis, ...], ...]
    copied: bool = False

    def _with(self, old: Sequence[Axis], new: Sequence[Axis]) -> Moved:
        return dataclasses.replace(self, axes=_replaced(self.axes, old, new),
                                   dims=tuple(_replaced(dim, old, new) for dim in self.dims))

    def joined(self) -> Moved:
        """With as few axes as possible: those that lie and stay beside each other as one."""
        for outer, inner in zip(self.axes, self.axes[1:]):
            together = any(one is outer and other is inner for dim in self.dims for one, other in zip(dim, dim[1:]))
            if together and outer.stride == inner.stride * inner.size:
                return self._with((outer, inner), (Axis(outer.size * inner.size, inner.stride),)).joined()
        return self

    def shape(self) -> list[Any]:
        sizes = []
        for dim in self.dims:
            size: Any = 1
            for axis in dim:
                size = size * axis.size
            sizes.append(size)
        return sizes

    def is_in_order(self) -> bool:
        """Whether it is the base, in its order and shape."""
        flat = [axis for dim in self.dims for axis in dim]
        return not self.taken and flat == list(self.axes) and self.shape() == [size_of(size) for size in value(self.base).shape]

    def is_view(self) -> bool:
        """Whether it takes no copy, once joined."""
        return all(len(dim) <= 1 for dim in self.dims)

    def viewed(self, shape: Sequence[Any]) -> Moved | None:
        """Its elements in their order under another shape. None where its axes cannot be cut so."""
        x, left, dims = self, [axis for dim in self.dims for axis in dim], []
        for size in shape:
            dim: list[Axis] = []
            missing = size_of(size)
            while missing != 1:
                if not left:
                    return None
                axis = left.pop(0)
                more = _quotient(missing, axis.size)
                if more is None:
                    rest = _quotient(axis.size, missing)
                    if rest is None:
                        return None
                    parts = Axis(missing, axis.stride * rest), Axis(rest, axis.stride)
                    x = x._with((axis,), parts)
                    left.insert(0, parts[1])
                    axis, more = parts[0], 1
                dim.append(axis)
                missing = more
            dims.append(tuple(dim))
        return None if left else dataclasses.replace(x, dims=tuple(dims))


def moved(node: fx.Node) -> Moved:
    """A result as far back as it can be followed."""
    if is_movement(node):
        after = _step(node, moved(node.args[0]))  # type: ignore[arg-type]
        if after is not None:
            return after
    like = value(node)
    axes = [Axis(size_of(size), size_of(stride)) for size, stride in zip(like.shape, like.stride())]
    dims = tuple(() if axis.size == 1 else (axis,) for axis in axes)
    return Moved(node, tuple(axis for axis in axes if axis.size != 1), {}, dims)


def _step(node: fx.Node, x: Moved) -> Moved | None:
    args: Any = node.args
    if is_call(node, aten.clone.default):
        return dataclasses.replace(x, copied=True)
    if is_call(node, *_VIEWS):
        return x.viewed(value(node).shape)
    if is_call(node, aten.permute.default):
        return dataclasses.replace(x, dims=tuple(x.dims[i] for i in args[1]))
    at = args[1] % len(x.dims)
    if len(x.dims[at]) != 1 or not isinstance(args[2], int):
        return None
    axis, = x.dims[at]
    if args[2] < 0:
        return None
    return dataclasses.replace(x, taken={**x.taken, axis: args[2]}, dims=(*x.dims[:at], *x.dims[at + 1:]))
