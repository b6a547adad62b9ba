# SPDX-License-Identifier: MIT
"""The original's library and runner of grouped convolutions, of grouped_conv_utils: one kernel that was built, or all that the
device has, on memory of the device or on NumPy arrays.
"""
from __future__ import annotations

import ctypes
import dataclasses
import pathlib
import traceback
from typing import Any

import numpy as np

from . import _library, _original
from ._arrays import dtype_name
from ._host_runner import HostRunner
from ._library import TilewiseError
from ._original_conv_problem import OPS, VARIANTS, GroupedConvProblem
from .api import kernels
from .config import KernelConfig
from .problem import Problem

_ORIGINAL_DTYPE = "fp16"  # of a library that was not built for one kernel, as for the original's C functions


@dataclasses.dataclass
class GroupedConvResult:
    """The result of a run. `output` has the kernel's output type. On failure success is False and error says why."""

    success: bool = False
    time_ms: float = 0.0
    tflops: float = 0.0
    output: Any = None
    error: str = ""


class GroupedConvDispatcherLib:
    """The kernel of one library, or, as find() gives it, every kernel for the device here."""

    def __init__(self, kernel: KernelConfig | None, path: Any):
        self.kernel, self.path = kernel, pathlib.Path(path)
        self.runner = HostRunner(kernel)

    @classmethod
    def find(cls) -> GroupedConvDispatcherLib:
        return cls(None, _library.path())

    @classmethod
    def load(cls, path: Any) -> GroupedConvDispatcherLib:
        return cls(_original.kernel_of(path), path)

    def initialize(self) -> None:
        """Opens the device, which the first run does otherwise."""
        self.runner.open()

    def cleanup(self) -> None:
        self.runner.close()

    def version(self) -> str:
        asked = ctypes.CDLL(str(_library.path())).conv_dispatcher_version
        asked.restype = ctypes.c_char_p
        return str(asked().decode())

    def kernel_names(self) -> list[str]:
        if self.kernel is not None:
            return [self.kernel.name]
        return [kernel.name for op in OPS for kernel in kernels(op=op, arch=self.runner.arch, dtype=_ORIGINAL_DTYPE)
                if kernel.available]

    def kernel_count(self) -> int:
        return len(self.kernel_names())

    def _has(self, variant: str) -> bool:
        return self.kernel is None or bool(self.kernel.op == VARIANTS[variant])

    def has_forward(self) -> bool:
        return self._has("forward")

    def has_bwd_data(self) -> bool:
        return self._has("bwd_data")

    def has_bwd_weight(self) -> bool:
        return self._has("bwd_weight")

    def problem_of(self, prob: GroupedConvProblem, dtype: str = _ORIGINAL_DTYPE) -> Problem:
        """The library's problem; a ValueError where its direction is not the kernel's."""
        if self.kernel is None:
            return prob.problem(dtype)
        if OPS[self.kernel.op] != prob.direction:
            raise ValueError(f"the problem's direction is {prob.direction}, the kernel {self.kernel.name} is "
                             f"{OPS[self.kernel.op]}")
        return prob.problem(self.kernel.dtype, None if self.kernel.layout == "any" else self.kernel.layout)

    def is_supported(self, problem: GroupedConvProblem) -> bool:
        try:
            return self.runner.may_run(self.problem_of(problem))
        except ValueError:
            return False

    def run(self, a_ptr: int, b_ptr: int, c_ptr: int, problem: GroupedConvProblem) -> float:
        """One launch on memory of the device: forward X, W, Y; bwd_data dY, W, dX; bwd_weight X, dY, dW. Milliseconds; what
        fails raises."""
        first, second = (b_ptr, a_ptr) if problem.direction == "bwd_weight" else (a_ptr, b_ptr)
        return self.runner.run_pointers(self.problem_of(problem), first, second, c_ptr)


class GpuGroupedConvRunner:
    """Runs the kernel of one library on NumPy arrays, on the device of its arch: a GPU or the CPU; without a library, the kernel
    that is chosen for each problem. Making one opens nothing: the first run does, so that a process may build in forked
    workers and run afterwards."""

    def __init__(self, lib_path: Any = None, warmup: int = 1, repeat: int = 3):
        self.lib_path = None if lib_path is None else pathlib.Path(lib_path)
        self._warmup, self._repeat = warmup, repeat
        self._lib: GroupedConvDispatcherLib | None = None
        self.init_error = self.init_traceback = ""

    def _ensure_initialized(self) -> GroupedConvDispatcherLib:
        """Opens the device and finds the kernel; run() calls it."""
        try:
            if self._lib is None:
                lib = self.lib
                lib.runner.warmup, lib.runner.repeat = self._warmup, max(self._repeat, 1)
                self._lib = lib
            self._lib.initialize()
        except (TilewiseError, OSError) as error:
            self.init_error, self.init_traceback = str(error), traceback.format_exc()
            raise
        return self._lib

    @property
    def lib(self) -> GroupedConvDispatcherLib:
        """Finds the kernel; opens nothing."""
        if self._lib is not None:
            return self._lib
        return GroupedConvDispatcherLib.find() if self.lib_path is None else GroupedConvDispatcherLib.load(self.lib_path)

    @property
    def library_path(self) -> str | None:
        """Where the library is; None where there is none."""
        path = _library.path() if self.lib_path is None else self.lib_path
        return str(path) if path.exists() else None

    def is_available(self) -> bool:
        """Whether the library is there and its device can be opened; opens it."""
        try:
            self._ensure_initialized()
        except (TilewiseError, OSError):
            return False
        return True

    def get_init_error(self) -> str | None:
        """Why the device could not be opened, or the library not be found."""
        return self.init_error or None

    def get_init_traceback(self) -> str | None:
        return self.init_traceback or None

    def run(self, input_np: Any, weight_np: Any, problem: GroupedConvProblem | None = None, output_np: Any = None,
            verbose: bool = False, *, prob: GroupedConvProblem | None = None) -> GroupedConvResult:
        """forward: X, W; bwd_data: dY, W; bwd_weight: X, dY. The problem, also called prob, has the kernel's direction.
        output_np: where the result goes; verbose: print what goes wrong, too."""
        try:
            wanted = problem if problem is not None else prob
            if wanted is None:
                raise TypeError("run() needs a problem: a GroupedConvProblem")
            return self._run(np.asanyarray(input_np), np.asanyarray(weight_np), wanted, output_np)
        except (TilewiseError, TypeError, ValueError, OSError) as error:
            if verbose:
                print(traceback.format_exc())
            return GroupedConvResult(error=str(error))

    def _run(self, first: Any, second: Any, prob: GroupedConvProblem, output_np: Any) -> GroupedConvResult:
        lib = self._ensure_initialized()
        problem = lib.problem_of(prob, dtype_name(first.dtype) if lib.kernel is None else "")
        # The library's operands of the backward pass of the weights are dY, then X.
        is_weight = prob.direction == "bwd_weight"
        operands = (second, first) if is_weight else (first, second)
        output, took = lib.runner.run(problem, *operands, split_k=prob.split_k if is_weight else 1)
        if output_np is not None:
            if output_np.shape != output.shape:
                raise ValueError(f"output_np: its shape is {output_np.shape}, the result's is {output.shape}")
            np.copyto(output_np, output, casting="unsafe")
            output = output_np
        return GroupedConvResult(True, took, problem.flops / took * 1e-9, output)

    def cleanup(self) -> None:
        if self._lib is not None:
            self._lib.cleanup()

    def __repr__(self) -> str:
        name = "chosen" if self.lib_path is None else self.lib_path.name
        return f"GpuGroupedConvRunner({name!r}{'' if self._lib is None else ', open'})"
