# SPDX-License-Identifier: MIT
"""The original's GEMM library, its runner and its validator, of ctypes_utils: one kernel that was built, on NumPy arrays."""
from __future__ import annotations

import dataclasses
import pathlib
import warnings
from typing import Any

import numpy as np

from . import _original
from ._answers import Plan
from ._arrays import numpy_dtype
from ._host_runner import HostRunner
from ._library import TilewiseError, UnsupportedError
from ._original_gemm import KernelConfig
from .config import KernelConfig as LibraryConfig
from .dispatcher import Dispatcher as LibraryDispatcher
from .dispatcher_common import get_generated_kernels_dir
from .registry import Registry as LibraryRegistry


@dataclasses.dataclass
class GemmResult:
    """The result of a run. `output` has the kernel's output type. On failure success is False and error says why."""

    output: Any = None
    time_ms: float = 0.0
    status: int = 0
    tflops: float = 0.0
    kernel_name: str = ""
    success: bool = False
    error: str = ""

    @property
    def C(self) -> Any:
        return self.output


class DispatcherLib:
    """A library that was set up: one kernel. Opens its device with the first run."""

    def __init__(self, path: Any, config: KernelConfig | None = None):
        self.path = pathlib.Path(path)
        self.kernel = _original.kernel_of(path)
        self.config = config or KernelConfig.from_library(self.kernel)
        self.runner = HostRunner(self.kernel)

    @classmethod
    def find(cls) -> pathlib.Path | None:
        """The first GEMM library, by name, that a set-up has made."""
        return min(get_generated_kernels_dir().glob("libdispatcher_gemm_*.so"), default=None)

    @classmethod
    def load(cls, path: Any = None) -> DispatcherLib | None:
        """A library by its path, or the one that find() finds; None where there is none."""
        found = cls.find() if path is None else pathlib.Path(path)
        return cls(found) if found is not None and found.exists() else None

    @classmethod
    def auto(cls) -> DispatcherLib | None:
        """The library of the default config for the GPU or the CPU here, built unless it is cached."""
        from .ctypes_utils import setup_gemm_dispatcher  # which needs this class
        return setup_gemm_dispatcher(KernelConfig()).lib

    @classmethod
    def compile(cls) -> pathlib.Path | None:
        """Where auto's library is, after it was built."""
        made = cls.auto()
        return None if made is None else made.path

    def initialize(self) -> bool:
        """Opens the device, which the first run does otherwise."""
        try:
            self.runner.open()
        except TilewiseError:
            return False
        return True

    def run_gemm(self, A: Any, B: Any, C: Any, M: int, N: int, K: int) -> tuple[int, float]:
        """(0, milliseconds) with the product in C, or (a negative status, 0). The arrays are the memory that the kernel
        reads and writes, in its types and layout: rcr has B as (N, K)."""
        try:
            problem = self.config.problem(M, N, K)
            operands = (_as_stored(x, problem.operands[name]) for x, name in ((A, "a"), (B, "b")))
            out, took = self.runner.run(problem, *operands)
            np.copyto(C.reshape(out.shape), out.view(C.dtype) if C.dtype.kind in "uV" else out, casting="unsafe")
        except (TilewiseError, TypeError, ValueError) as error:
            warnings.warn(f"run_gemm: {error}", stacklevel=2)
            return (-2 if isinstance(error, UnsupportedError) else -1), 0.0
        return 0, took

    def get_kernel_name(self) -> str:
        return self.kernel.name

    def get_kernel_count(self) -> int:
        return 1

    def is_supported(self, M: int, N: int, K: int) -> bool:
        return bool(self._plan(M, N, K))

    def select_kernel(self, M: int, N: int, K: int) -> str | None:
        return self._plan(M, N, K).kernel

    def _plan(self, M: int, N: int, K: int) -> Plan:
        return _one_kernel(self.kernel).select(self.config.problem(M, N, K))

    def export_json(self) -> str:
        registry = LibraryRegistry("default")
        registry.add(self.kernel)
        return registry.export(statistics=True)

    export_registry_json = export_json

    def cleanup(self) -> None:
        self.runner.close()


def _as_stored(x: Any, spec: Any) -> Any:
    """Memory as an operand: raw words of its size are its bits, numbers its values."""
    array = np.asanyarray(x)
    wanted = numpy_dtype(spec.dtype)
    raw = array.dtype.kind in "uV" and array.dtype.itemsize == wanted.itemsize and wanted.kind != "u"
    return (array.view(wanted) if raw and array.dtype != wanted else array).reshape(spec.shape)


def _one_kernel(kernel: LibraryConfig) -> LibraryDispatcher:
    """Selects from one kernel, on no device."""
    registry = LibraryRegistry("one")
    registry.add(kernel)
    return LibraryDispatcher(None, arch=kernel.arch, registry=registry)


class GemmRunner:
    """Runs a library on NumPy arrays: A (M, K) and B (K, N), as they are written. Values are rounded to the kernel's types
    and stored in its layout; the output is (M, N), of the kernel's output type."""

    def __init__(self, lib: DispatcherLib | Any, warmup: int = 1, repeat: int = 3):
        if hasattr(lib, "lib"):  # what a set-up gave
            if lib.lib is None:
                raise ValueError(f"the set-up failed, so there is nothing to run: {lib.error}")
            lib = lib.lib
        self.lib: DispatcherLib = lib if isinstance(lib, DispatcherLib) else DispatcherLib(lib)
        self.lib.runner.warmup, self.lib.runner.repeat = warmup, max(repeat, 1)

    def run(self, A: Any, B: Any, M: int | None = None, N: int | None = None, K: int | None = None, *,
            dtype: Any = None) -> GemmResult:
        """dtype: of the output, where that is not to be the kernel's."""
        try:
            result = self._run(np.asanyarray(A), np.asanyarray(B), (M, N, K))
            return result if dtype is None else dataclasses.replace(result, output=result.output.astype(dtype))
        except (TilewiseError, TypeError, ValueError) as error:
            return GemmResult(status=getattr(error, "code", -1), kernel_name=self.lib.kernel.name, error=str(error))

    def _run(self, a: Any, b: Any, given: tuple[int | None, ...]) -> GemmResult:
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
            raise ValueError(f"A is {a.shape}, B is {b.shape}; need (M, K) and (K, N)")
        m, n, k = a.shape[0], b.shape[1], a.shape[1]
        for name, asked, have in zip("MNK", given, (m, n, k)):
            if asked is not None and asked != have:
                raise ValueError(f"{name} is {asked}, but A {a.shape} and B {b.shape} have {have}")
        layout, problem = self.lib.config.layout, self.lib.config.problem(m, n, k)
        out, took = self.lib.runner.run(problem, a if layout[0] == "r" else a.T, b if layout[1] == "r" else b.T)
        return GemmResult(output=out if layout[2] == "r" else out.T, time_ms=took, success=True,
                          tflops=problem.flops / took * 1e-9, kernel_name=self.lib.kernel.name)

    def benchmark(self, M: int, N: int, K: int, warmup: int = 2, iterations: int = 10) -> dict[str, Any]:
        """Times of runs on random values: M, N, K, min_ms, avg_ms, max_ms, tflops, iterations; or {"error"}."""
        rng = np.random.default_rng(0)
        a, b = rng.uniform(-1, 1, (M, K)), rng.uniform(-1, 1, (K, N))
        results = [self.run(a, b) for _ in range(warmup + iterations)][warmup:]
        failed = [result.error for result in results if not result.success]
        if failed or not results:
            return {"error": failed[0] if failed else "no iterations"}
        times = [result.time_ms for result in results]
        mean = sum(times) / len(times)
        return {"M": M, "N": N, "K": K, "min_ms": min(times), "avg_ms": mean, "max_ms": max(times),
                "tflops": 2.0 * M * N * K / mean * 1e-9, "iterations": len(times)}


class Validator:
    """Compares a result with a reference. NaN where the reference has none is a mismatch, and so is another shape."""

    def __init__(self, rtol: float = 1e-3, atol: float = 1e-2):
        self.rtol, self.atol = rtol, atol

    @staticmethod
    def compute_reference(A: Any, B: Any) -> Any:
        return np.asarray(A).astype(np.float64) @ np.asarray(B).astype(np.float64)

    def check(self, result: Any, reference: Any) -> tuple[bool, float, float]:
        """(whether all is close, the largest error, the mean error)"""
        have, want = np.asarray(result).astype(np.float64), np.asarray(reference).astype(np.float64)
        if have.shape != want.shape:
            return False, float("inf"), float("inf")
        error = np.abs(have - want)
        close = bool(np.allclose(have, want, rtol=self.rtol, atol=self.atol, equal_nan=True))
        return close, float(np.max(error, initial=0)), float(error.mean()) if error.size else 0.0
