# SPDX-License-Identifier: MIT
"""Channels-last copies of filters, kept beside the layers that they belong to, for inference: kernels read filters so, and a
parameter keeps the strides that it has. A copy is good as long as the parameter is the same tensor, at the same address, in
the same version. Nothing of it is in a layer: neither a state dict nor a pickle nor a copy of the layer has it.
"""
from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import torch
from torch import nn

from . import _autograd, _schema
from ._functional import autocast_type


@dataclasses.dataclass(frozen=True)
class _Source:
    """What a copy was made from and where; another one needs another copy."""

    parameter: weakref.ref[torch.Tensor]
    version: int
    address: int
    dtype: torch.dtype
    stream: int


_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the number of dimensions

_copies: weakref.WeakKeyDictionary[nn.Module, tuple[_Source, torch.Tensor]] = weakref.WeakKeyDictionary()


def forget(layer: nn.Module) -> None:
    _copies.pop(layer, None)


def _stream(weight: torch.Tensor) -> int:
    return torch.cuda.current_stream(weight.device).cuda_stream if weight.is_cuda else 0


def _is_lasting(weight: Any) -> bool:
    """Whether the weights are those of inference, so that a copy serves for longer: no gradient is recorded, and neither a
    compiler nor a trace nor a CUDA graph looks on, which must see the parameter itself."""
    if type(weight) is not nn.Parameter or weight.is_inference() or weight.device.type not in ("cpu", "cuda"):
        return False
    if torch._C._is_tracing():
        return False
    if weight.requires_grad and torch.is_grad_enabled():
        return False
    return not (weight.is_cuda and torch.cuda.is_current_stream_capturing())


def filters(layer: nn.Module, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The weights of a convolution for an input x: a channels-last copy of the layer's where x is channels-last, in the type
    that x has after autocast, or the weights as they are."""
    if torch.compiler.is_compiling() or _autograd.is_transformed():  # tensors of torch.vmap do not tell their memory format
        return weight
    form = _FORMATS.get(weight.dim())
    if (form is None or layer.training or weight.is_contiguous(memory_format=form) or
            not x.is_contiguous(memory_format=form) or not _schema.is_channels_last(x)):
        return weight
    if not _is_lasting(weight):
        forget(layer)
        return weight
    dtype = autocast_type(x) or weight.dtype
    source = _Source(weakref.ref(weight), weight._version, weight.data_ptr(), dtype, _stream(weight))
    kept = _copies.get(layer)
    if kept is None or kept[0] != source:
        with torch.inference_mode(False):  # a copy of inference mode would serve no gradient of x later
            kept = source, weight.detach().to(dtype, memory_format=form)
        _copies[layer] = kept
    return kept[1]
