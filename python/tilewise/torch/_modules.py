# SPDX-License-Identifier: MIT
# mypy: disable-error-code="no-untyped-call,no-any-return"
"""Layers: torch.nn's own, computed by tilewise. Tensors that tilewise does not compute (of float64, of other devices, sharded
ones) are left to torch.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from . import _choice, _functional, _packed, _quick

_PLAIN = (torch.Tensor, nn.Parameter)
_DEVICES = ("cpu", "cuda", "meta")


def _computes(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether tilewise computes tensors of this kind: a type and a device that it has, and memory of their own. torch says what
    is wrong with what is no tensor."""
    if not isinstance(x, torch.Tensor) or x.is_nested:
        return False
    if x.dtype not in _functional.TYPES or weight.dtype not in _functional.TYPES or x.device.type not in _DEVICES:
        return False
    if x.layout != torch.strided or weight.layout != torch.strided:
        return False
    return not any(type(given) not in _PLAIN and hasattr(type(given), "__tensor_flatten__")  # stands for others, as DTensor does
                   for given in (x, weight))


class _Layer(nn.Module):
    """What every layer of tilewise has."""

    tilewise_choice: _choice.Choice | None = None  # how its kernels are chosen; None: as the library does

    def _get_name(self) -> str:
        return "tilewise." + type(self).__name__

    def extra_repr(self) -> str:
        choice = self.tilewise_choice
        return super().extra_repr() + (f", {choice}" if choice is not None else "")

    def train(self, mode: bool = True) -> Any:
        _packed.forget(self)
        return super().train(mode)

    def __prepare_scriptable__(self) -> nn.Module:
        raise RuntimeError("torch.jit.script knows no layers of tilewise; call tilewise.torch.restore(model) before it, or use "
                           "torch.jit.trace or torch.export")

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        _packed.forget(self)
        return super()._apply(fn, recurse)


def _call(layer: Any, function: Callable[..., torch.Tensor], *args: Any) -> torch.Tensor:
    if layer.tilewise_choice is None or torch.compiler.is_compiling():
        return function(*args)
    with _choice.choosing(layer.tilewise_choice):
        return function(*args)


# By the number of dimensions: torch's function and ours.
_CONV: dict[int, tuple[Any, Any]] = {1: (F.conv1d, _functional.conv1d), 2: (F.conv2d, _functional.conv2d),
                                     3: (F.conv3d, _functional.conv3d)}
_TRANSPOSED: dict[int, tuple[Any, Any]] = {1: (F.conv_transpose1d, _functional.conv_transpose1d),
                                           2: (F.conv_transpose2d, _functional.conv_transpose2d),
                                           3: (F.conv_transpose3d, _functional.conv_transpose3d)}

# One function for each kind of layer, whole for torch.fx, which cannot look into what depends on types and strides.


def linear_layer(layer: Any, x: torch.Tensor) -> torch.Tensor:
    weight, bias = layer.weight, layer.bias
    if layer.tilewise_choice is None and (quick := _quick.linear(x, weight, bias)) is not None:
        return quick
    if not _computes(x, weight):
        return F.linear(x, weight, bias)
    return _call(layer, _functional.linear, x, weight, bias)


def conv_layer(layer: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, dims: int) -> torch.Tensor:
    padding = layer.padding
    if layer.padding_mode != "zeros":
        x, padding = F.pad(x, layer._reversed_padding_repeated_twice, mode=layer.padding_mode), 0
    theirs, ours = _CONV[dims]
    if not _computes(x, weight):
        return theirs(x, weight, bias, layer.stride, padding, layer.dilation, layer.groups)
    return _call(layer, ours, x, _packed.filters(layer, x, weight), bias, layer.stride, padding, layer.dilation, layer.groups)


def conv_transpose_layer(layer: Any, x: torch.Tensor, output_size: list[int] | None, dims: int) -> torch.Tensor:
    more = layer._output_padding(x, output_size, layer.stride, layer.padding, layer.kernel_size, dims, layer.dilation)
    geometry = (layer.stride, layer.padding, more, layer.groups, layer.dilation)
    theirs, ours = _TRANSPOSED[dims]
    if not _computes(x, layer.weight):
        return theirs(x, layer.weight, layer.bias, *geometry)
    return _call(layer, ours, x, _packed.filters(layer, x, layer.weight), layer.bias, *geometry)


torch.fx.wrap("linear_layer")
torch.fx.wrap("conv_layer")
torch.fx.wrap("conv_transpose_layer")


class Linear(_Layer, nn.Linear):
    """torch.nn.Linear, computed by tilewise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear_layer(self, x)


class Conv1d(_Layer, nn.Conv1d):
    """torch.nn.Conv1d, computed by tilewise."""

    def _conv_forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return conv_layer(self, x, weight, bias, 1)


class Conv2d(_Layer, nn.Conv2d):
    """torch.nn.Conv2d, computed by tilewise."""

    def _conv_forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return conv_layer(self, x, weight, bias, 2)


class Conv3d(_Layer, nn.Conv3d):
    """torch.nn.Conv3d, computed by tilewise."""

    def _conv_forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return conv_layer(self, x, weight, bias, 3)


class ConvTranspose1d(_Layer, nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d, computed by tilewise."""

    def forward(self, x: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        return conv_transpose_layer(self, x, output_size, 1)


class ConvTranspose2d(_Layer, nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d, computed by tilewise."""

    def forward(self, x: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        return conv_transpose_layer(self, x, output_size, 2)


class ConvTranspose3d(_Layer, nn.ConvTranspose3d):
    """torch.nn.ConvTranspose3d, computed by tilewise."""

    def forward(self, x: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        return conv_transpose_layer(self, x, output_size, 3)


# torch's layers and ours.
OURS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: Linear, nn.Conv1d: Conv1d, nn.Conv2d: Conv2d, nn.Conv3d: Conv3d, nn.ConvTranspose1d: ConvTranspose1d,
    nn.ConvTranspose2d: ConvTranspose2d, nn.ConvTranspose3d: ConvTranspose3d}

# Those whose sizes the first input tells: they become ours then.
for _theirs, _ours in list(OURS.items()):
    _lazy = getattr(nn, "Lazy" + _theirs.__name__)
    _made = type(_lazy.__name__, (_lazy,), {"__doc__": f"torch.nn.{_lazy.__name__}, which becomes one of tilewise's.",
                                            "__module__": "tilewise.torch._modules", "cls_to_become": _ours,
                                            "_get_name": _Layer._get_name})
    globals()[_lazy.__name__] = OURS[_lazy] = _made
