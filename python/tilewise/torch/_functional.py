# SPDX-License-Identifier: MIT
"""gemm, linear, conv1d, conv2d and conv3d on tensors: arguments as torch.nn.functional has them, checked and spread out
for the ops. An activation is fused into the kernel where no gradient is recorded, and follows it where one is.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from . import _ops

# The library's activations in torch's words.
_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu, "relu6": F.relu6, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardswish": F.hardswish}


def _needs_gradient(*tensors: torch.Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def _activate(x: torch.Tensor, activation: str | None) -> torch.Tensor:
    for word in activation.split("+") if activation else ():
        if word not in _ACTIVATIONS:
            raise ValueError(f"activation: {word!r}; need one of {', '.join(_ACTIVATIONS)}, or several joined by +")
        x = _ACTIVATIONS[word](x)
    return x


def _cast(*tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    """To the type of torch.autocast, where it is on."""
    kind = next(x.device.type for x in tensors if x is not None)
    if not torch.is_autocast_enabled(kind):
        return list(tensors)
    dtype = torch.get_autocast_dtype(kind)
    return [x if x is None or x.dtype not in (torch.float32, torch.float16, torch.bfloat16) else x.to(dtype)
            for x in tensors]


def gemm(a: torch.Tensor, b: torch.Tensor, *, layout: str = "rcr", bias: torch.Tensor | None = None,
         activation: str | None = None) -> torch.Tensor:
    """activation(A @ B + bias) with gradients; layout, batches and activations as in tilewise.gemm."""
    if len(layout) != 3 or set(layout) - {"r", "c"}:
        raise ValueError(f"layout: {layout!r}; need three letters of r and c, for A, B and C")
    for given, name in ((a, "a"), (b, "b")):
        if given.dim() not in (2, 3):
            raise ValueError(f"{name}: {given.dim()} dimensions {tuple(given.shape)}; need 2, or 3 with a batch")
    x, w, shift = _cast(a, b, bias)
    assert x is not None and w is not None
    fuse = not _needs_gradient(a, b, bias)
    y = _ops.gemm(x, w, layout, shift, activation or "" if fuse else "")
    return y if fuse else _activate(y, activation)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *,
           activation: str | None = None) -> torch.Tensor:
    """activation(x @ weight.T + bias) as torch.nn.functional.linear: x (..., in), weight (out, in)."""
    if weight.dim() != 2 or x.size(-1) != weight.size(1):
        raise ValueError(f"x {tuple(x.shape)} and weight {tuple(weight.shape)} do not match; need (..., in) and (out, in)")
    y = gemm(x.reshape(-1, x.size(-1)), weight, bias=bias, activation=activation)
    return y.reshape(*x.shape[:-1], weight.size(0))


Sizes = int | Sequence[int]


def _spread(value: Sizes, dims: int, name: str) -> list[int]:
    values = [value] * dims if isinstance(value, int) else list(value)
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


def _conv(dims: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sizes,
          padding: Sizes | str, dilation: Sizes, groups: int, activation: str | None) -> torch.Tensor:
    if x.dim() == dims + 1:  # one image without a batch
        return _conv(dims, x[None], weight, bias, stride, padding, dilation, groups, activation)[0]
    if x.dim() != dims + 2 or weight.dim() != dims + 2:
        raise ValueError(f"x has {x.dim()} dimensions {tuple(x.shape)}, weight {weight.dim()} {tuple(weight.shape)}; "
                         f"conv{dims}d needs {dims + 2}: N, C, sizes and K, C/groups, sizes")
    if groups < 1 or x.size(1) != weight.size(1) * groups or weight.size(0) % groups:
        raise ValueError(f"x has {x.size(1)} channels, weight {tuple(weight.shape)}, groups={groups}; need C = "
                         f"{weight.size(1)} * groups, and K divisible by groups")
    steps, jumps = _spread(dilation, dims, "dilation"), _spread(stride, dims, "stride")
    before, after = pads(padding, weight.shape[2:], jumps, steps)
    image, filters, shift = _cast(x, weight, bias)
    assert image is not None and filters is not None
    fuse = not _needs_gradient(x, weight, bias)
    y = _ops.conv(image, filters, shift, jumps, before, after, steps, groups, activation or "" if fuse else "")
    return y if fuse else _activate(y, activation)


def conv1d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, *,
           activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv1d, with an activation after it: x (N, C, L), weight (K, C/groups, X)."""
    return _conv(1, x, weight, bias, stride, padding, dilation, groups, activation)


def conv2d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, *,
           activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv2d, with an activation after it: x (N, C, H, W), weight (K, C/groups, Y, X)."""
    return _conv(2, x, weight, bias, stride, padding, dilation, groups, activation)


def conv3d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, *,
           activation: str | None = None) -> torch.Tensor:
    """As torch.nn.functional.conv3d, with an activation after it: x (N, C, D, H, W), weight (K, C/groups, Z, Y, X)."""
    return _conv(3, x, weight, bias, stride, padding, dilation, groups, activation)
