# SPDX-License-Identifier: MIT
"""Runs a prepared problem on NumPy arrays of the host, wherever its device is: operands are copied there and the result
back. Asked for by name (run_host), since nothing else copies.
"""
from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _library
from ._arrays import look_of, maker_like, numpy_dtype, operand
from ._operands import check_operand

if TYPE_CHECKING:
    from ._prepared import Prepared

_OF_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def as_operand(x: Any, spec: Any, name: str, align: int) -> Any:
    """x as the problem needs it: rounded to its type where it has another, contiguous, at a multiple of so many bytes."""
    array = np.asanyarray(x)
    look_of(array, name)  # refuses what its memory does not tell, such as a mask
    if array.dtype.kind not in "fiub" and array.dtype.name not in _OF_ML_DTYPES:
        raise TypeError(f"{name}: expected numbers, got an array of {array.dtype}")
    if array.shape != spec.shape:
        raise ValueError(f"{name}: its shape is {array.shape}, the problem needs {spec.shape}")
    array = np.require(array.astype(numpy_dtype(spec.dtype), copy=False), requirements=["C", "A"])
    if array.ctypes.data % align == 0:
        return array
    copied = maker_like(array, spec.shape, spec.dtype, align)()[0]
    copied[...] = array
    return copied


def run_host(prepared: Prepared, context: int, a: Any, b: Any, warmup: int, repeat: int) -> tuple[Any, float]:
    """The result, and the milliseconds of one launch: the mean of `repeat` after `warmup`, without the copies."""
    specs = prepared.operands
    a, b = as_operand(a, specs["a"], "a", prepared.align), as_operand(b, specs["b"], "b", prepared.align)
    out = maker_like(a, specs["c"].shape, specs["c"].dtype, prepared.align)()[0]
    for array, name in ((a, "a"), (b, "b"), (out, "c")):  # memory of the device has no gaps either
        check_operand(operand(array, "out" if name == "c" else name), specs[name])
    if prepared.device == "cpu":
        taken = prepared.pack_b(b) if prepared.packed_b_bytes else b
        return out, _time(lambda: prepared(a, taken, out=out), lambda: None, warmup, repeat)
    with contextlib.ExitStack() as held:
        x, y, z = (held.enter_context(_memory(context, array.nbytes)) for array in (a, b, out))
        scratch = held.enter_context(_memory(context, prepared.workspace_bytes))
        _library.check("tilewise_copy", context, x, a.ctypes.data, a.nbytes, None)
        _library.check("tilewise_copy", context, y, b.ctypes.data, b.nbytes, None)
        if prepared.packed_b_bytes:
            packed = held.enter_context(_memory(context, prepared.packed_b_bytes))
            prepared.pack(y, packed, None)
            y = packed
        took = _time(lambda: prepared.launch(x, y, z, None, 1.0, 0.0, None, scratch or None),
                     lambda: _library.check("tilewise_synchronize", context, None), warmup, repeat)
        _library.check("tilewise_copy", context, out.ctypes.data, z, out.nbytes, None)
    return out, took


def launch_once(prepared: Prepared, context: int, a: int, b: int, c: int) -> float:
    """One launch on memory of the device, and the milliseconds until it is done."""
    with contextlib.ExitStack() as held:
        scratch = held.enter_context(_memory(context, prepared.workspace_bytes))
        return _time(lambda: prepared.launch(a, b, c, None, 1.0, 0.0, None, scratch or None),
                     lambda: _library.check("tilewise_synchronize", context, None), 0, 1)


def _time(launch: Any, finish: Any, warmup: int, repeat: int) -> float:
    for _ in range(warmup):
        launch()
    finish()
    start = time.perf_counter()
    for _ in range(repeat):
        launch()
    finish()
    return (time.perf_counter() - start) / repeat * 1e3


@contextlib.contextmanager
def _memory(context: int, count: int) -> Iterator[int]:
    """Memory of the device; given back even when a run fails."""
    if count == 0:
        yield 0
        return
    place = ctypes.c_void_p()
    _library.check("tilewise_allocate", context, count, ctypes.byref(place))
    try:
        yield place.value or 0
    finally:
        _library.check("tilewise_release", context, place)
