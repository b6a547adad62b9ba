# SPDX-License-Identifier: MIT
"""Runs one kernel on operands of the host, wherever it runs: they are copied to the device and the result back. What the
original's runners do; it opens the device with its first run.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _library
from ._arrays import numpy_dtype
from ._prepared import Prepared
from .config import KernelConfig
from .dispatcher import Dispatcher
from .dispatcher_common import device_of
from .problem import Problem


def as_operand(x: Any, spec: Any, name: str) -> Any:
    """x as the problem needs it: rounded to its type where it has another, contiguous."""
    array = np.asarray(x)
    if array.dtype.kind in "OSUVM" and array.dtype.name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        raise TypeError(f"{name}: expected numbers, got an array of {array.dtype}")
    if array.shape != spec.shape:
        raise ValueError(f"{name}: its shape is {array.shape}, the problem needs {spec.shape}")
    return np.require(array.astype(numpy_dtype(spec.dtype), copy=False), requirements=["C", "A"])


class HostRunner:
    """A kernel of an arch, on NumPy operands."""

    def __init__(self, kernel: KernelConfig, warmup: int = 1, repeat: int = 3):
        self.kernel, self.warmup, self.repeat = kernel, warmup, max(repeat, 1)
        self.device = device_of(kernel.arch)
        self._dispatcher: Dispatcher | None = None
        self._pid = 0

    @property
    def is_open(self) -> bool:
        return self._dispatcher is not None and self._pid == os.getpid()

    def open(self) -> Dispatcher:
        """Opens the device; the first run of each process does."""
        if self._dispatcher is None or self._pid != os.getpid():
            made = Dispatcher(self.device, arch=self.kernel.arch)
            made.describe()
            self._dispatcher, self._pid = made, os.getpid()
        return self._dispatcher

    def close(self) -> None:
        self._dispatcher = None

    def run(self, problem: Problem, a: Any, b: Any) -> tuple[Any, float]:
        """The result, and the milliseconds of one launch, on average over `repeat` after `warmup`."""
        prepared = self.open().prepare(problem, kernel=self.kernel)
        specs = prepared.operands
        a, b = as_operand(a, specs["a"], "first operand"), as_operand(b, specs["b"], "second operand")
        out = np.empty(specs["c"].shape, numpy_dtype(specs["c"].dtype))
        if self.device == "cpu":
            return out, self._time(lambda: prepared(a, b, out=out), lambda: None)
        return out, self._run_on_device(prepared, a, b, out)

    def _time(self, launch: Any, finish: Any) -> float:
        for _ in range(self.warmup):
            launch()
        finish()
        start = time.perf_counter()
        for _ in range(self.repeat):
            launch()
        finish()
        return (time.perf_counter() - start) / self.repeat * 1e3

    def _run_on_device(self, prepared: Prepared, a: Any, b: Any, out: Any) -> float:
        assert self._dispatcher is not None
        context = self._dispatcher._open()
        with contextlib.ExitStack() as held:
            x, y, z = (held.enter_context(_memory(context, array.nbytes)) for array in (a, b, out))
            scratch = held.enter_context(_memory(context, prepared.workspace_bytes))
            _library.check("tilewise_copy", context, x, a.ctypes.data, a.nbytes, None)
            _library.check("tilewise_copy", context, y, b.ctypes.data, b.nbytes, None)
            took = self._time(lambda: prepared.launch(x, y, z, None, 1.0, 0.0, None, scratch or None),
                              lambda: _library.check("tilewise_synchronize", context, None))
            _library.check("tilewise_copy", context, out.ctypes.data, z, out.nbytes, None)
        return took


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
