# SPDX-License-Identifier: MIT
# mypy: disable-error-code="no-untyped-call,no-any-return"
"""gemm, linear, conv1d to conv3d and conv_transpose1d to conv_transpose3d on tensors: arguments as torch.nn.functional has
them, checked and spread out for the ops. An activation is fused into the kernel where no gradient is recorded, and follows
it where one is.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import torch
import torch.nn.functional as F

from .._library import whole
from . import _autograd, _quick
from ._epilogue import activate

TYPES = (torch.float32, torch.float16, torch.bfloat16)


def _check_tensors(**given: torch.Tensor | None) -> None:
    for name, x in given.items():
        if not isinstance(x, torch.Tensor) and (x is not None or name != "bias"):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")


def _may_fuse(*tensors: torch.Tensor | None) -> bool:
    """Whether no gradient is recorded, in any of the ways that torch has."""
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        return False
    return torch.compiler.is_compiling() or not _autograd.is_transformed()


def autocast_type(x: torch.Tensor) -> torch.dtype | None:
    """The type of torch.autocast on x's device, where it is on."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if kind != "meta" and torch.is_autocast_enabled(kind) else None


def _cast(*tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    dtype = next(autocast_type(x) for x in tensors if x is not None)
    if dtype is None:
        return list(tensors)
    return [x if x is None or x.dtype not in TYPES else x.to(dtype) for x in tensors]


def _operands(names: Sequence[str], x: torch.Tensor, w: torch.Tensor,
              bias: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Cast where autocast is on, and of one type."""
    first, second, shift = _cast(x, w, bias)
    assert first is not None and second is not None
    for other, name in ((second, names[1]), (shift, "bias")):
        if other is not None and other.dtype != first.dtype:
            raise TypeError(f"{names[0]} is of {first.dtype}, {name} of {other.dtype}; need the same: cast one with .to()")
    return first, second, shift


def _epilogue(op: Callable[[torch.Tensor | None, str], torch.Tensor], fuse: bool, bias: torch.Tensor | None,
              activation: str | None) -> torch.Tensor:
    if not isinstance(activation, (str, NoneType)):
        raise TypeError(f"activation: expected a word, got {type(activation).__name__}")
    return op(bias, activation or "") if fuse else activate(op(bias, ""), activation)


# ---- products --------------------------------------------------------------------------------------------------------


def gemm(a: torch.Tensor, b: torch.Tensor, *, layout: str = "rcr", bias: torch.Tensor | None = None,
         activation: str | None = None) -> torch.Tensor:
    """activation(A @ B + bias) with gradients; layout, batches and activations as in tilewise.gemm."""
    if len(layout) != 3 or set(layout) - {"r", "c"}:
        raise ValueError(f"layout: {layout!r}; need three letters of r and c, for A, B and C")
    _check_tensors(a=a, b=b, bias=bias)
    for given, name in ((a, "a"), (b, "b")):
        if given.dim() not in (2, 3):
            raise ValueError(f"{name}: {given.dim()} dimensions {tuple(given.shape)}; need 2, or 3 with a batch")
    x, w, shift = _operands("ab", a, b, bias)
    return _epilogue(lambda bias, activation: _autograd.gemm(x, w, layout, bias, activation), _may_fuse(a, b, bias), shift,
                     activation)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *,
           activation: str | None = None) -> torch.Tensor:
    """activation(x @ weight.T + bias) as torch.nn.functional.linear: x (..., in), weight (out, in)."""
    if activation is None and (quick := _quick.linear(x, weight, bias)) is not None:
        return quick
    _check_tensors(x=x, weight=weight, bias=bias)
    if weight.dim() != 2 or x.dim() == 0 or x.size(-1) != weight.size(1):
        raise ValueError(f"x {tuple(x.shape)} and weight {tuple(weight.shape)} do not match; need (..., in) and (out, in)")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias: shape {tuple(bias.shape)}; need ({weight.size(0)},), one value for each row of weight")
    rows, w, shift = _operands(("x", "weight"), x, weight, bias)
    return _epilogue(lambda bias, activation: _autograd.linear(rows, w, bias, None, activation),
                     _may_fuse(x, weight, bias), shift, activation)


# ---- convolutions ----------------------------------------------------------------------------------------------------

Sizes = int | Sequence[int]


def _number(value: Any, name: str) -> Any:
    return value if isinstance(value, (int, torch.SymInt)) else whole(value, name)


def _spread(value: Sizes, dims: int, name: str) -> list[int]:
    values: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value] * dims
    values = [_number(one, name) for one in values]
    if len(values) == 1:
        values *= dims
    if len(values) != dims:
        raise ValueError(f"{name}: {value}; need one number, or {dims}")
    return values


def pads(padding: Sizes | str, filter_size: Sequence[int], stride: list[int],
         dilation: list[int]) -> tuple[list[int], list[int]]:
    """What is added before and after each dimension; "same" keeps the size and adds the odd one after."""
    dims = len(filter_size)
    if isinstance(padding, str):
        if padding == "valid":
            return [0] * dims, [0] * dims
        if padding != "same":
            raise ValueError(f"padding: {padding!r}; need numbers, 'same' or 'valid'")
        if any(step != 1 for step in stride):
            raise ValueError(f"padding: 'same' needs a stride of 1, not {stride}")
        total = [step * (taps - 1) for step, taps in zip(dilation, filter_size)]
        return [size // 2 for size in total], [size - size // 2 for size in total]
    both = _spread(padding, dims, "padding")
    return both, both


def _check_conv(name: str, dims: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, groups: int,
                transposed: bool) -> None:
    if x.dim() != dims + 2 or weight.dim() != dims + 2:
        order = "C, K/groups" if transposed else "K, C/groups"
        raise ValueError(f"x has {x.dim()} dimensions {tuple(x.shape)}, weight {weight.dim()} {tuple(weight.shape)}; "
                         f"{name} needs {dims + 2}: N, C, sizes and {order}, sizes")
    need = weight.size(0) if transposed else weight.size(1) * groups
    if groups < 1 or x.size(1) != need or weight.size(0) % groups:
        raise ValueError(f"x has {x.size(1)} channels, weight {tuple(weight.shape)}, groups={groups}; need C = "
                         + (f"{need}, divisible by groups" if transposed else
                            f"{weight.size(1)} * groups, and K divisible by groups"))
    channels = weight.size(1) * groups if transposed else weight.size(0)
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"bias: shape {tuple(bias.shape)}; need ({channels},), one value for each channel of the result")


def _conv(dims: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sizes,
          padding: Sizes | str, dilation: Sizes, groups: int, activation: str | None) -> torch.Tensor:
    _check_tensors(x=x, weight=weight, bias=bias)
    if x.dim() == dims + 1:  # one image without a batch
        return _conv(dims, x.unsqueeze(0), weight, bias, stride, padding, dilation, groups, activation).squeeze(0)
    groups = _number(groups, "groups")
    _check_conv(f"conv{dims}d", dims, x, weight, bias, groups, False)
    steps, jumps = _spread(dilation, dims, "dilation"), _spread(stride, dims, "stride")
    before, after = pads(padding, weight.shape[2:], jumps, steps)
    _quick.keep(dims, stride, padding, dilation, groups, [*jumps, *before, *after, *steps])
    image, filters, shift = _operands(("x", "weight"), x, weight, bias)
    return _epilogue(lambda bias, activation: _autograd.conv(image, filters, bias, None, jumps, before, after, steps,
                                                             groups, activation),
                     _may_fuse(x, weight, bias), shift, activation)


def conv1d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, *,
           activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv1d, with an activation after it: x (N, C, L), weight (K, C/groups, X)."""
    quick = _quick.conv(1, x, weight, bias, stride, padding, dilation, groups) if activation is None else None
    return _conv(1, x, weight, bias, stride, padding, dilation, groups, activation) if quick is None else quick


def conv2d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, *,
           activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv2d, with an activation after it: x (N, C, H, W), weight (K, C/groups, Y, X)."""
    quick = _quick.conv(2, x, weight, bias, stride, padding, dilation, groups) if activation is None else None
    return _conv(2, x, weight, bias, stride, padding, dilation, groups, activation) if quick is None else quick


def conv3d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, *,
           activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv3d, with an activation after it: x (N, C, D, H, W), weight (K, C/groups, Z, Y, X)."""
    quick = _quick.conv(3, x, weight, bias, stride, padding, dilation, groups) if activation is None else None
    return _conv(3, x, weight, bias, stride, padding, dilation, groups, activation) if quick is None else quick


# ---- transposed convolutions -----------------------------------------------------------------------------------------


def _conv_transpose(dims: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sizes,
                    padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes,
                    activation: str | None) -> torch.Tensor:
    """The gradient of the data of the convolution that makes x from the result."""
    _check_tensors(x=x, weight=weight, bias=bias)
    if x.dim() == dims + 1:
        return _conv_transpose(dims, x.unsqueeze(0), weight, bias, stride, padding, output_padding, groups, dilation,
                               activation).squeeze(0)
    groups = _number(groups, "groups")
    _check_conv(f"conv_transpose{dims}d", dims, x, weight, bias, groups, True)
    steps, jumps = _spread(dilation, dims, "dilation"), _spread(stride, dims, "stride")
    both, more = _spread(padding, dims, "padding"), _spread(output_padding, dims, "output_padding")
    for extra, jump, step in zip(more, jumps, steps):
        if not 0 <= extra < max(jump, step):
            raise ValueError(f"output_padding: {output_padding}; need less than stride {jumps} or dilation {steps}")
    # A row that the stride skips at the end costs nothing. Others take away from the padding after it; where there is none
    # left, no value of x reaches them.
    taken = [0 if extra < jump else min(extra, pad) for extra, jump, pad in zip(more, jumps, both)]
    missed = [0 if extra < jump else extra - take for extra, jump, take in zip(more, jumps, taken)]
    after = [pad - take for pad, take in zip(both, taken)]
    sizes = [(size - 1) * jump - 2 * pad + step * (taps - 1) + extra - miss + 1 for size, jump, pad, step, taps, extra, miss in
             zip(x.shape[2:], jumps, both, steps, weight.shape[2:], more, missed)]
    if torch.jit.is_tracing():  # takes no list of sizes that it follows
        sizes = [int(size) for size in sizes]
    image, filters, shift = _operands(("x", "weight"), x, weight, bias)

    def op(bias: torch.Tensor | None, activation: str) -> torch.Tensor:
        return _autograd.conv_backward_data(image, filters, bias, sizes, jumps, both, after, steps, groups, activation)

    if not any(missed):
        return _epilogue(op, _may_fuse(x, weight, bias), shift, activation)
    y = F.pad(op(None, ""), [side for miss in reversed(missed) for side in (0, miss)])
    return activate(y if shift is None else y + shift.view(-1, *[1] * dims), activation)


def conv_transpose1d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
                     padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1, *,
                     activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv_transpose1d, with an activation after it: x (N, C, L), weight (C, K/groups, X)."""
    return _conv_transpose(1, x, weight, bias, stride, padding, output_padding, groups, dilation, activation)


def conv_transpose2d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
                     padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1, *,
                     activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv_transpose2d, with an activation after it: x (N, C, H, W), weight (C, K/groups, Y, X)."""
    return _conv_transpose(2, x, weight, bias, stride, padding, output_padding, groups, dilation, activation)


def conv_transpose3d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
                     padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1, *,
                     activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv_transpose3d, with an activation after it: x (N, C, D, H, W), weight
    (C, K/groups, Z, Y, X)."""
    return _conv_transpose(3, x, weight, bias, stride, padding, output_padding, groups, dilation, activation)
