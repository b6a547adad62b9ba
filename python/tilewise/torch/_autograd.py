# SPDX-License-Identifier: MIT
# mypy: disable-error-code="no-untyped-call,no-any-return"
"""Gradients of the ops in both directions, made of the same ops, so that they have gradients as well, and vmap.

These functions are registered as the ops' gradients unless the C++ ops bring their own. They always serve under torch.func
and forward-mode differentiation, which know Python functions alone, and where a layer chooses its kernels itself.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from . import _choice, _ops, _schema, _vmap

_FLIP = {"r": "c", "c": "r"}


def is_transformed() -> bool:
    """Whether torch.func, or forward-mode differentiation, looks at what is computed now."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def _entry(name: str) -> Callable[..., torch.Tensor]:
    op = getattr(torch.ops.tilewise, name).default

    def call(*args: Any) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return op(*args)
        if _choice.current() is not None or is_transformed():
            return FUNCTIONS[name].apply(*args)
        return op(*args)

    call.__name__ = name
    return call


gemm = _entry("gemm")
linear = _entry("linear")
conv = _entry("conv")
conv_backward_data = _entry("conv_backward_data")
conv_backward_weight = _entry("conv_backward_weight")


def _run(name: str, *args: Any) -> torch.Tensor:
    """The op below its gradients."""
    if _choice.current() is not None:
        return _ops.KERNELS[name](*args)
    with torch._C._AutoDispatchBelowAutograd():
        result: torch.Tensor = getattr(torch.ops.tilewise, name).default(*args)
        return result


def _keep(ctx: Any, first: torch.Tensor, second: torch.Tensor, bias: torch.Tensor | None, activation: str,
          *more: Any) -> None:
    ctx.save_for_backward(first, second)
    ctx.save_for_forward(first, second)
    ctx.has_bias, ctx.activation, ctx.more, ctx.choice = bias is not None, activation, more, _choice.current()


def _kept(ctx: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if ctx.activation:
        raise RuntimeError(f"the fused activation {ctx.activation!r} has no gradient; call tilewise.torch's functions, "
                           "which fuse none where a gradient is needed, or apply the activation after the op")
    first, second = ctx.saved_tensors
    return first, second


def _sum(*terms: torch.Tensor | None) -> torch.Tensor | None:
    total = None
    for term in terms:
        total = term if total is None else total if term is None else total + term
    return total


def _spread(bias: torch.Tensor | None, dims: int, channels: int) -> torch.Tensor | None:
    """A bias as it is added to a result of so many dimensions; `channels` is the dimension it belongs to."""
    return None if bias is None else bias.view([-1 if i == channels % dims else 1 for i in range(dims)])


def _unspread(gradient: torch.Tensor, channels: int) -> torch.Tensor:
    """The gradient of a bias."""
    return gradient.sum([i for i in range(gradient.dim()) if i != channels % gradient.dim()])


def _tangent(terms: tuple[torch.Tensor | None, ...], bias: torch.Tensor | None, like: torch.Tensor,
             shape: list[Any]) -> torch.Tensor:
    """The sum of a result's tangents; a bias is spread out to the shape."""
    total = _sum(*terms)
    if bias is not None:
        total = bias.expand(shape).clone() if total is None else total + bias
    return like.new_zeros(shape) if total is None else total


# ---- products --------------------------------------------------------------------------------------------------------


def _as_shape(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Summed over the batch that an operand was shared by."""
    if gradient.dim() > like.dim():
        return gradient.sum(0)
    return gradient.sum(0, keepdim=True) if like.dim() == 3 and like.size(0) < gradient.size(0) else gradient


class Gemm(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        return _run("gemm", *inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        a, b, layout, bias, activation = inputs
        _keep(ctx, a, b, bias, activation, layout)

    @staticmethod
    def backward(ctx: Any, dc: torch.Tensor) -> tuple[Any, ...]:
        a, b = _kept(ctx)
        la, lb, lc = ctx.more[0]
        da = db = dbias = None
        with _choice.choosing(ctx.choice):
            if ctx.needs_input_grad[0]:
                da = _as_shape(gemm(dc, b, lc + _FLIP[lb] + la, None, ""), a)
            if ctx.needs_input_grad[1]:
                db = _as_shape(gemm(a, dc, _FLIP[la] + lc + lb, None, ""), b)
        if ctx.has_bias and ctx.needs_input_grad[3]:
            dbias = _unspread(dc, -1 if lc == "r" else -2)
        return da, db, None, dbias, None

    @staticmethod
    def jvp(ctx: Any, ta: Any, tb: Any, _layout: Any, tbias: Any, _activation: Any) -> torch.Tensor:
        a, b = _kept(ctx)
        layout = ctx.more[0]
        shape = _schema.gemm_shape(a, b, layout)
        terms = (None if ta is None else gemm(ta, b, layout, None, ""), None if tb is None else gemm(a, tb, layout, None, ""))
        bias = _spread(tbias, len(shape), -1 if layout[2] == "r" else -2)
        return _tangent(terms, bias, a, shape)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[torch.Tensor, int]:
        return _vmap.gemm(gemm, info.batch_size, in_dims, *inputs)


def _matrix(x: torch.Tensor) -> torch.Tensor:
    """The rows of x, whatever they are rows of."""
    return x.flatten(0, -2) if x.dim() > 1 else x.unsqueeze(0)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        return _run("linear", *inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        x, weight, bias, _d, activation = inputs
        _keep(ctx, x, weight, bias, activation)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        x, weight = _kept(ctx)
        dx = dw = db = None
        rows = _matrix(dy)
        with _choice.choosing(ctx.choice):
            if ctx.needs_input_grad[0]:
                dx = gemm(rows, weight, "rrr", None, "").view(x.shape)
            if ctx.needs_input_grad[1]:
                dw = gemm(rows, _matrix(x), "crr", None, "")
        if ctx.has_bias and ctx.needs_input_grad[2]:
            db = rows.sum(0)
        return dx, dw, db, None, None

    @staticmethod
    def jvp(ctx: Any, tx: Any, tw: Any, tbias: Any, _d: Any, _activation: Any) -> torch.Tensor:
        x, weight = _kept(ctx)
        terms = (None if tx is None else linear(tx, weight, None, None, ""),
                 None if tw is None else linear(x, tw, None, None, ""))
        return _tangent(terms, tbias, x, [*x.shape[:-1], weight.size(0)])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[torch.Tensor, int]:
        return _vmap.linear(linear, gemm, info.batch_size, in_dims, *inputs)


# ---- convolutions ----------------------------------------------------------------------------------------------------
# Geometry travels as it does in the schemas: stride, padding before and after, dilation, groups.


def _formatted(gradient: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
    """In the memory format of the result that it is the gradient of, so that those that follow from it are as torch's."""
    return gradient.contiguous(memory_format=_schema.memory_format(*operands)) if gradient.dim() > 3 else gradient


class Conv(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        return _run("conv", *inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        x, w, bias, _d, *geometry, activation = inputs
        _keep(ctx, x, w, bias, activation, *geometry)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        x, w = _kept(ctx)
        dx = dw = db = None
        dy = _formatted(dy, x, w)
        with _choice.choosing(ctx.choice):
            if ctx.needs_input_grad[0]:
                dx = conv_backward_data(dy, w, None, x.shape[2:], *ctx.more, "")
            if ctx.needs_input_grad[1]:
                dw = conv_backward_weight(x, dy, w.shape[2:], *ctx.more)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            db = _unspread(dy, 1)
        return dx, dw, db, *[None] * 7

    @staticmethod
    def jvp(ctx: Any, tx: Any, tw: Any, tbias: Any, *_: Any) -> torch.Tensor:
        x, w = _kept(ctx)
        terms = (None if tx is None else conv(tx, w, None, None, *ctx.more, ""),
                 None if tw is None else conv(x, tw, None, None, *ctx.more, ""))
        return _tangent(terms, _spread(tbias, x.dim(), 1), x, _schema.conv_shape(x, w, *ctx.more[:-1]))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[torch.Tensor, int]:
        return _vmap.conv(conv, info.batch_size, in_dims, *inputs)


class ConvBackwardData(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        return _run("conv_backward_data", *inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        dy, w, bias, size, *geometry, activation = inputs
        _keep(ctx, dy, w, bias, activation, size, *geometry)

    @staticmethod
    def backward(ctx: Any, ddx: torch.Tensor) -> tuple[Any, ...]:
        dy, w = _kept(ctx)
        first = second = dbias = None
        ddx = _formatted(ddx, dy, w)
        with _choice.choosing(ctx.choice):
            if ctx.needs_input_grad[0]:
                first = conv(ddx, w, None, None, *ctx.more[1:], "")
            if ctx.needs_input_grad[1]:
                second = conv_backward_weight(ddx, dy, w.shape[2:], *ctx.more[1:])
        if ctx.has_bias and ctx.needs_input_grad[2]:
            dbias = _unspread(ddx, 1)
        return first, second, dbias, *[None] * 7

    @staticmethod
    def jvp(ctx: Any, tdy: Any, tw: Any, tbias: Any, *_: Any) -> torch.Tensor:
        dy, w = _kept(ctx)
        terms = (None if tdy is None else conv_backward_data(tdy, w, None, *ctx.more, ""),
                 None if tw is None else conv_backward_data(dy, tw, None, *ctx.more, ""))
        shape = [dy.size(0), w.size(1) * ctx.more[-1], *ctx.more[0]]
        return _tangent(terms, _spread(tbias, dy.dim(), 1), dy, shape)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[torch.Tensor, int]:
        return _vmap.conv_backward_data(conv_backward_data, info.batch_size, in_dims, *inputs)


class ConvBackwardWeight(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        return _run("conv_backward_weight", *inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        x, dy, size, *geometry = inputs
        _keep(ctx, x, dy, None, "", size, *geometry)

    @staticmethod
    def backward(ctx: Any, ddw: torch.Tensor) -> tuple[Any, ...]:
        x, dy = _kept(ctx)
        first = second = None
        with _choice.choosing(ctx.choice):
            if ctx.needs_input_grad[0]:
                first = conv_backward_data(dy, ddw, None, x.shape[2:], *ctx.more[1:], "")
            if ctx.needs_input_grad[1]:
                second = conv(x, ddw, None, None, *ctx.more[1:], "")
        return first, second, *[None] * 6

    @staticmethod
    def jvp(ctx: Any, tx: Any, tdy: Any, *_: Any) -> torch.Tensor:
        x, dy = _kept(ctx)
        terms = (None if tx is None else conv_backward_weight(tx, dy, *ctx.more),
                 None if tdy is None else conv_backward_weight(x, tdy, *ctx.more))
        return _tangent(terms, None, x, [dy.size(1), x.size(1) // ctx.more[-1], *ctx.more[0]])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[torch.Tensor, int]:
        return _vmap.conv_backward_weight(conv_backward_weight, info.batch_size, in_dims, *inputs)


FUNCTIONS: dict[str, Any] = {"gemm": Gemm, "linear": Linear, "conv": Conv, "conv_backward_data": ConvBackwardData,
                             "conv_backward_weight": ConvBackwardWeight}

# ---- registration ----------------------------------------------------------------------------------------------------


def _kernel(name: str) -> Callable[..., torch.Tensor]:
    function = FUNCTIONS[name]
    op = getattr(torch.ops.tilewise, name).default

    def kernel(*args: Any) -> torch.Tensor:
        recorded = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in args)
        if recorded or forward_ad._current_level >= 0:
            if torch._C._are_functorch_transforms_active():
                raise NotImplementedError(f"torch.ops.tilewise.{name} is not for torch.func; call tilewise.torch's functions")
            return function.apply(*args)
        with torch._C._AutoDispatchBelowAutograd():
            return op(*args)

    return kernel


def _always(name: str) -> Callable[..., torch.Tensor]:
    return lambda *args: FUNCTIONS[name].apply(*args)


# Under the key of every device: those of the C++ ops, for the CPU and for CUDA, go before, and send tensors with a tangent to
# the functions of Python by the second name.
implementations = torch.library.Library("tilewise", "IMPL")
for _name in FUNCTIONS:
    implementations.impl(_name, _kernel(_name), "Autograd")
    _schema.definitions.define(f"_python_{_name}{_schema.SCHEMAS[_name]}")
    implementations.impl(f"_python_{_name}", _always(_name), "CompositeImplicitAutograd")
