# SPDX-License-Identifier: MIT
"""Reads the DLPack capsule of an array: the exchange format of array libraries. Only looks: the array's owner is the
caller, who holds it for as long as a call lasts, so the capsule is given back at once.
"""
from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

_VERSION = (1, 0)
_CPU, _CUDA, _CUDA_HOST, _ROCM, _CUDA_MANAGED = 1, 2, 3, 10, 13
_DEVICES = {_CPU: "cpu", _CUDA_HOST: "cpu", _CUDA: "cuda", _CUDA_MANAGED: "cuda", _ROCM: "hip"}
_READ_ONLY, _COPIED = 1, 2
_TYPES = {(0, 8): "int8", (0, 32): "int32", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
          (4, 16): "bfloat16", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


@dataclasses.dataclass(frozen=True)
class View:
    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    device: str
    writable: bool
    nbytes: int


def packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _view(tensor: _Tensor, writable: bool) -> View:
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else packed(shape)
    kind = _DEVICES.get(tensor.device_type, f"dlpack{tensor.device_type}")
    count = 1
    for size in shape:
        count *= size
    known = _TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    return View((tensor.data or 0) + tensor.byte_offset,
                known or f"with DLPack code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes", shape, strides,
                kind if kind == "cpu" else f"{kind}:{tensor.device_id}", writable, count * tensor.bits // 8)


def _capsule(x: Any) -> Any:
    try:
        return x.__dlpack__(max_version=_VERSION)
    except TypeError:  # from before the versions, when nothing said whether one may write
        return x.__dlpack__()


def view_of(x: Any) -> View:
    """The tensor that x's capsule describes. The capsule is not consumed: its own destructor ends the loan."""
    capsule = _capsule(x)
    if _is_valid(capsule, b"dltensor_versioned"):
        held = _Versioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if held.flags & _COPIED:  # it ends with the capsule, and nobody would see what is written there
            raise TypeError(f"a {type(x).__name__} hands out a copy of itself (__dlpack__); give an array in plain memory")
        return _view(held.tensor, not held.flags & _READ_ONLY)
    return _view(_Tensor.from_address(_get_pointer(capsule, b"dltensor")), True)
