# SPDX-License-Identifier: MIT
# mypy: disable-error-code="no-untyped-call,no-any-return"
"""torch.vmap of the ops: the mapped dimension becomes a part of one that the op has, more images, more groups or a batch of
products. `dims` says for each operand which of its dimensions is mapped, if any; `op` is what computes without it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._epilogue import activate

Op = Callable[..., torch.Tensor]
Mapped = tuple[torch.Tensor, int]  # a result, and its mapped dimension


def _front(x: torch.Tensor, dim: int | None, batch: int) -> torch.Tensor:
    """The mapped dimension first, also of an operand that has none."""
    return x.expand(batch, *x.shape) if dim is None else x.movedim(dim, 0)


def _front_or_none(x: torch.Tensor | None, dim: int | None, batch: int) -> torch.Tensor | None:
    return None if x is None else _front(x, dim, batch)


# ---- products --------------------------------------------------------------------------------------------------------


def gemm(op: Op, batch: int, dims: Any, a: torch.Tensor, b: torch.Tensor, layout: str, bias: torch.Tensor | None,
         activation: str) -> Mapped:
    ranks = [x.dim() - (dim is not None) for x, dim in ((a, dims[0]), (b, dims[1]))]
    own = max(x.size(1 if dim == 0 else 0) if rank == 3 else 1
              for x, dim, rank in ((a, dims[0], ranks[0]), (b, dims[1], ranks[1])))

    def lift(x: torch.Tensor, dim: int | None, rank: int) -> torch.Tensor:
        if dim is None and rank == 2:
            return x  # shared by the whole batch
        x = _front(x, dim, batch)
        x = x if rank == 3 else x.unsqueeze(1)
        return x.expand(batch, own, *x.shape[2:]).flatten(0, 1)

    shared = bias is None or dims[3] is None
    c = op(lift(a, dims[0], ranks[0]), lift(b, dims[1], ranks[1]), layout, bias if shared else None,
           activation if shared else "")
    if c.dim() == 2:  # only the bias is mapped
        c = c.expand(batch, 1, *c.shape)
    else:
        c = c.unflatten(0, (batch, own))
    c = c if 3 in ranks else c.squeeze(1)
    if shared:
        return c, 0
    assert bias is not None
    columns = bias.movedim(dims[3], 0)
    columns = columns.view(batch, *[1] * (c.dim() - 2), -1)
    return activate(c + (columns if layout[2] == "r" else columns.mT), activation), 0


def linear(op: Op, product: Op, batch: int, dims: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
           d: torch.Tensor | None, activation: str) -> Mapped:
    x, d = _front(x, dims[0], batch), _front_or_none(d, dims[3], batch)
    if dims[1] is None and (bias is None or dims[2] is None):
        return op(x, weight, bias, d, activation), 0
    rows = x.reshape(batch, -1, x.size(-1))
    y = product(rows, _front(weight, dims[1], batch), "rcr", None, "")
    y = y.view(*x.shape[:-1], y.size(-1))
    if bias is not None:
        y = y + _front(bias, dims[2], batch).view(batch, *[1] * (y.dim() - 2), -1)
    return activate(y, activation, d), 0


# ---- convolutions ----------------------------------------------------------------------------------------------------


def _more_images(x: torch.Tensor | None, dim: int | None, batch: int) -> torch.Tensor | None:
    return None if x is None else _front(x, dim, batch).flatten(0, 1)


def _more_channels(x: torch.Tensor | None, dim: int | None, batch: int) -> torch.Tensor | None:
    return None if x is None else _front(x, dim, batch).movedim(0, 1).flatten(1, 2)


def conv(op: Op, batch: int, dims: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None,
         d: torch.Tensor | None, *rest: Any) -> Mapped:
    *geometry, groups, activation = rest
    if dims[1] is None and (bias is None or dims[2] is None):
        y = op(_more_images(x, dims[0], batch), w, bias, _more_images(d, dims[3], batch), *rest)
        return y.unflatten(0, (batch, y.size(0) // batch)), 0
    filters, shift = _more_images(w, dims[1], batch), _more_images(bias, dims[2], batch)
    y = op(_more_channels(x, dims[0], batch), filters, shift, _more_channels(d, dims[3], batch), *geometry,
           groups * batch, activation)
    return y.unflatten(1, (batch, y.size(1) // batch)), 1


def conv_backward_data(op: Op, batch: int, dims: Any, dy: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None,
                       *rest: Any) -> Mapped:
    *geometry, groups, activation = rest
    if dims[1] is None and (bias is None or dims[2] is None):
        dx = op(_more_images(dy, dims[0], batch), w, bias, *rest)
        return dx.unflatten(0, (batch, dx.size(0) // batch)), 0
    dx = op(_more_channels(dy, dims[0], batch), _more_images(w, dims[1], batch), _more_images(bias, dims[2], batch),
            *geometry, groups * batch, activation)
    return dx.unflatten(1, (batch, dx.size(1) // batch)), 1


def conv_backward_weight(op: Op, batch: int, dims: Any, x: torch.Tensor, dy: torch.Tensor, *rest: Any) -> Mapped:
    *geometry, groups = rest
    dw = op(_more_channels(x, dims[0], batch), _more_channels(dy, dims[1], batch), *geometry, groups * batch)
    return dw.unflatten(0, (batch, dw.size(0) // batch)), 0
