# SPDX-License-Identifier: MIT
"""The short way from tilewise.torch's functions to the C++ ops, for plain calls: nothing is traced, transformed or chosen."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from . import _cpp
from ._choice import now as _now

_is_compiling = torch.compiler.is_dynamo_compiling  # what torch.export traces without Dynamo is no plain tensor
_is_transformed = torch._C._are_functorch_transforms_active
_is_traced = torch._C._is_tracing  # by torch.jit.trace: what it keeps outlives this process, and its numbers of geometries
_TENSOR = torch.Tensor
_NONE = -1

# The ops below Python's part of torch.ops, once they are there.
_linear: Callable[..., torch.Tensor] | None = None
_conv: Callable[..., torch.Tensor] | None = None
_geometries: dict[Any, int] = {}  # the numbers of the C++ ops, by the arguments of a convolution


def open_ways() -> None:
    """Called when the C++ ops are loaded."""
    global _linear, _conv
    _linear, _conv = (getattr(torch.ops.tilewise, name).default._op for name in ("_linear", "_conv"))


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor | None:
    """None where the call is not a plain one."""
    if (_is_compiling() or _linear is None or type(x) is not _TENSOR or forward_ad._current_level >= 0 or _now.choice is not None
            or _is_transformed() or _is_traced()):
        return None
    try:
        return _linear(x, weight, bias)
    except (TypeError, ValueError):  # the longer way says it in the words of the function
        return None


def conv(dims: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Any, padding: Any,
         dilation: Any, groups: int) -> torch.Tensor | None:
    """None where the call is not a plain one, or the geometry was not met before."""
    if (_is_compiling() or _conv is None or type(x) is not _TENSOR or forward_ad._current_level >= 0 or _now.choice is not None
            or _is_transformed() or _is_traced()):
        return None
    try:
        number = _geometries.get((dims, stride, padding, dilation, groups), _NONE)
        return None if number == _NONE else _conv(x, weight, bias, number)
    except (TypeError, ValueError):  # a list where a tuple would do, or what the longer way says in words of its own
        return None


def keep(dims: int, stride: Any, padding: Any, dilation: Any, groups: int, numbers: list[int]) -> None:
    """Gives the geometry of a convolution, that the longer way has worked out, a number: `numbers` are stride, padding before
    and after, and dilation, of each dimension."""
    if _is_compiling() or _conv is None or isinstance(padding, str) or not all(type(x) is int for x in numbers):
        return
    key = (dims, stride, padding, dilation, groups)
    try:
        if key not in _geometries:
            _geometries[key] = _cpp.number_of(dims, numbers, groups)
    except TypeError:  # a list where a tuple would do
        return


_cpp.when_loaded(open_ways)
