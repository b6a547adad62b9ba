# SPDX-License-Identifier: MIT
"""GEMM as the original dispatcher's module of this name has it: a KernelConfig, set up into a library, run on NumPy arrays.

    config = KernelConfig(dtype_a="bf16", tile_m=128, tile_n=128, tile_k=32)
    setup = setup_gemm_dispatcher(config, registry_name="mine", verbose=True)
    result = setup.dispatcher.run(A, B, M, N, K)         # A (M, K), B (K, N), whatever layout the kernel reads

Where the original falls back, this reports: a config that breaks a rule is corrected in ways that the result lists, or
refused; a kernel that cannot be built is success=False with the compiler's command and log, never another kernel. Without
gfx_arch the GPU here is meant, or the CPU where there is none. Nothing opens a device before the first run.
"""
from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _original
from ._answers import Plan
from ._host_runner import HostRunner
from ._library import TilewiseError
from .config import KernelConfig as LibraryConfig
from .dispatcher import Dispatcher as LibraryDispatcher
from ._original_gemm import (KernelConfig, auto_correct_kernel_config, print_auto_correction, print_kernel_config,
                             validate_kernel_config)
from .dispatcher_common import (ValidationResultBase, auto_correct_trait, auto_correct_wave, cleanup_generated_kernels,
                                detect_gpu_arch, get_generated_kernels_dir, validate_trait_combo,
                                validate_warp_tile_config, validate_wave_config)
from .registry import Registry as LibraryRegistry

__all__ = ["Dispatcher", "DispatcherLib", "GemmResult", "GemmRunner", "GemmSetupResult", "KernelConfig", "Registry",
           "ValidationResultBase", "Validator", "auto_correct_kernel_config", "auto_correct_trait", "auto_correct_wave",
           "cleanup_gemm", "detect_gpu_arch", "get_generated_kernels_dir", "print_auto_correction",
           "print_kernel_config", "reset_for_example", "setup_gemm_dispatcher", "setup_multiple_gemm_dispatchers",
           "validate_kernel_config", "validate_trait_combo", "validate_warp_tile_config", "validate_wave_config"]

# ---- running ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class GemmResult:
    """What a run gave. `output` has the kernel's output type; on failure success is False and error says why."""

    output: Any = None
    time_ms: float = 0.0
    status: int = 0
    tflops: float = 0.0
    kernel_name: str = ""
    success: bool = False
    error: str = ""


class DispatcherLib:
    """A library that was set up: one kernel. Opens its device with the first run."""

    def __init__(self, path: Any, config: KernelConfig | None = None):
        self.path = pathlib.Path(path)
        self.kernel = _original.kernel_of(path)
        self.config = config or KernelConfig.from_library(self.kernel)
        self.runner = HostRunner(self.kernel)

    @classmethod
    def load(cls, path: Any) -> DispatcherLib:
        return cls(path)

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

    def cleanup(self) -> None:
        self.runner.close()


def _one_kernel(kernel: LibraryConfig) -> LibraryDispatcher:
    """Selects from one kernel, on no device."""
    registry = LibraryRegistry("one")
    registry.add(kernel)
    return LibraryDispatcher(None, arch=kernel.arch, registry=registry)


class GemmRunner:
    """Runs a library on NumPy arrays: A (M, K) and B (K, N), as they are written. Values are rounded to the kernel's types
    and stored in its layout; the output is (M, N), of the kernel's output type."""

    def __init__(self, lib: DispatcherLib | GemmSetupResult | Any, warmup: int = 1, repeat: int = 3):
        if isinstance(lib, GemmSetupResult):
            if lib.lib is None:
                raise ValueError(f"the set-up failed, so there is nothing to run: {lib.error}")
            lib = lib.lib
        self.lib: DispatcherLib = lib if isinstance(lib, DispatcherLib) else DispatcherLib(lib)
        self.lib.runner.warmup, self.lib.runner.repeat = warmup, max(repeat, 1)

    def run(self, A: Any, B: Any, M: int | None = None, N: int | None = None, K: int | None = None) -> GemmResult:
        try:
            return self._run(np.asanyarray(A), np.asanyarray(B), (M, N, K))
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

    def benchmark(self, M: int, N: int, K: int, seed: int = 0) -> GemmResult:
        """Runs on random values."""
        rng = np.random.default_rng(seed)
        return self.run(rng.uniform(-1, 1, (M, K)), rng.uniform(-1, 1, (K, N)))


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


# ---- registries and selection ----------------------------------------------------------------------------------------


class Registry:
    """Configs to choose from."""

    def __init__(self, name: str = "default", lib: DispatcherLib | None = None):
        self.name, self.lib = name, lib
        self._kernels: dict[str, KernelConfig] = {}

    def register_kernel(self, config: KernelConfig) -> bool:
        """False where it is there already; a config that breaks a rule is a ValueError."""
        checked = validate_kernel_config(config)
        if not checked:
            raise ValueError("; ".join(checked.errors))
        new = config.name not in self._kernels
        self._kernels[config.name] = config
        return new

    def get_kernels(self) -> list[KernelConfig]:
        return list(self._kernels.values())

    @property
    def kernel_count(self) -> int:
        return len(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def clear(self) -> None:
        self._kernels.clear()

    def bind_library(self, lib: DispatcherLib) -> None:
        self.lib = lib

    def build(self, verbose: bool = False, max_workers: int = 0) -> list[GemmSetupResult]:
        """Every kernel as a library."""
        return setup_multiple_gemm_dispatchers(self.get_kernels(), verbose=verbose, max_workers=max_workers)

    def to_library(self) -> LibraryRegistry:
        registry = LibraryRegistry(self.name)
        for name in self._kernels:
            registry.add(name)
        return registry

    def to_json(self) -> str:
        return self.to_library().export(statistics=True)

    def __repr__(self) -> str:
        return f"Registry({self.name!r}, <{len(self)} kernels>)"


class Dispatcher:
    """Chooses among the kernels of a registry for each problem, and runs the choice on NumPy arrays."""

    def __init__(self, registry: Registry | None = None, lib: DispatcherLib | None = None):
        if registry is None:
            if lib is None:
                raise ValueError("a dispatcher needs a registry or a library")
            registry = Registry("default", lib)
            registry._kernels[lib.kernel.name] = lib.config
        self.registry, self.lib = registry, lib or registry.lib

    def select(self, M: int, N: int, K: int) -> Plan:
        """The whole plan: the kernel, why, and why others may not run. Kernels of several archs are several choices: the
        first config's arch counts."""
        configs = self.registry.get_kernels()
        if not configs:
            raise ValueError(f"the registry {self.registry.name!r} has no kernels; register some first")
        chooser = LibraryDispatcher(None, arch=configs[0].gfx_arch, registry=self.registry.to_library())
        return chooser.select(configs[0].problem(M, N, K))

    def select_kernel(self, M: int, N: int, K: int) -> str | None:
        return self.select(M, N, K).kernel

    def is_supported(self, M: int, N: int, K: int) -> bool:
        return bool(self.select(M, N, K))

    def run(self, A: Any, B: Any, M: int | None = None, N: int | None = None, K: int | None = None) -> GemmResult:
        a, b = np.asanyarray(A), np.asanyarray(B)
        if a.ndim != 2 or b.ndim != 2:
            return GemmResult(status=-1, error=f"A is {a.shape}, B is {b.shape}; need (M, K) and (K, N)")
        try:
            plan = self.select(a.shape[0], b.shape[1], a.shape[1])
        except (TilewiseError, ValueError) as error:
            return GemmResult(status=-1, error=str(error))
        if plan.kernel is None:
            reasons = [f"{item.name}: {item.rule}, have {item.have}, need {item.need}" for item in plan.rejected[:3]]
            return GemmResult(status=-2, error=f"no kernel of {self.registry.name!r} may run it: " + "; ".join(reasons))
        if self.lib is None or self.lib.kernel.name != plan.kernel:
            setup = setup_gemm_dispatcher(self.registry._kernels[plan.kernel], auto_correct=False)
            if setup.lib is None:
                return GemmResult(status=-1, kernel_name=plan.kernel, error=setup.error)
            self.lib = setup.lib
        return GemmRunner(self.lib).run(a, b, M, N, K)


# ---- setting up ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class GemmSetupResult:
    """A library made ready, or the reason why not: error has the compiler's command and log. `corrections` lists what was
    changed in the config; `cached` whether nothing had to be built."""

    success: bool = False
    config: KernelConfig | None = None
    lib: DispatcherLib | None = None
    registry: Registry | None = None
    dispatcher: Dispatcher | None = None
    library_path: pathlib.Path | None = None
    cached: bool = False
    corrections: list[str] = dataclasses.field(default_factory=list)
    error: str = ""


def setup_gemm_dispatcher(config: KernelConfig, registry_name: str = "default", verbose: bool = False,
                          auto_rebuild: bool = True, auto_correct: bool = True) -> GemmSetupResult:
    """Checks the config, corrects it where it breaks rules (unless auto_correct=False), and builds its kernel unless it is
    cached. auto_rebuild is there for the original's callers: a kernel whose source has changed is always built anew."""
    return setup_multiple_gemm_dispatchers([config], registry_name, verbose, auto_correct=auto_correct)[0]


def setup_multiple_gemm_dispatchers(configs: Sequence[KernelConfig], registry_name: str = "default",
                                    verbose: bool = False, max_workers: int = 0,
                                    auto_correct: bool = True) -> list[GemmSetupResult]:
    """The same for many, with `max_workers` compilers at a time (0: one for each CPU). In the order of the configs; a
    failure stops no other."""
    results, ready = [], []
    for given in configs:
        config, _, changes = auto_correct_kernel_config(given, verbose) if auto_correct else (given, False, [])
        checked = validate_kernel_config(config)
        results.append(GemmSetupResult(config=config, corrections=changes, error="; ".join(checked.errors)))
        if checked:
            ready.append(results[-1])
    outcomes = _original.build_libraries([result.config.to_library() for result in ready if result.config], max_workers,
                                         verbose)
    for result, outcome in zip(ready, outcomes):
        result.error = outcome.error
        if outcome.path is not None:
            result.success, result.library_path, result.cached = True, outcome.path, outcome.cached
            result.lib = DispatcherLib(outcome.path, result.config)
            result.registry = Registry(registry_name, result.lib)
            result.registry._kernels[result.lib.kernel.name] = result.lib.config
            result.dispatcher = Dispatcher(result.registry, result.lib)
    return results


def cleanup_gemm() -> None:
    """Removes the libraries' names; built kernels stay in the cache."""
    cleanup_generated_kernels()


def reset_for_example(verbose: bool = False) -> None:
    """The same as cleanup_gemm, under the name that the original's examples use."""
    cleanup_gemm()
