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
import json
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _original
from ._answers import Plan
from ._library import TilewiseError
from ._original_codegen import CodegenResult, CodegenRunner, find_matching_kernel_header
from ._original_gemm import (AnyGemmConfig, KernelConfig, auto_correct_kernel_config, preshuffle_weight_matrix,
                             print_auto_correction, print_kernel_config, validate_kernel_config)
from ._original_gemm_runner import DispatcherLib, GemmResult, GemmRunner, Validator
from .dispatcher import Dispatcher as LibraryDispatcher
from .dispatcher_common import (ValidationResultBase, auto_correct_trait, auto_correct_wave, cleanup_generated_kernels,
                                detect_gpu_arch, get_arch_filter_data, get_build_dir, get_ck_root, get_codegen_dir,
                                get_dispatcher_root, get_generated_kernels_dir, validate_trait_combo,
                                validate_warp_tile_config, validate_wave_config)
from .registry import Registry as LibraryRegistry

__all__ = ["CodegenResult", "CodegenRunner", "Dispatcher", "DispatcherLib", "GemmResult", "GemmRunner", "GemmSetupResult",
           "KernelConfig", "Registry", "SUPPORTED_DTYPES", "VALID_DTYPES", "ValidationResult", "ValidationResultBase",
           "Validator", "auto_correct_kernel_config", "auto_correct_trait", "auto_correct_wave", "cleanup_gemm",
           "cleanup_generated_kernels", "detect_gpu_arch", "find_matching_kernel_header", "get_arch_filter_data",
           "get_build_dir", "get_ck_root", "get_codegen_dir", "get_dispatcher_root", "get_generated_kernels_dir",
           "preshuffle_weight_matrix", "print_auto_correction", "print_kernel_config", "reset_for_example",
           "setup_gemm_dispatcher", "setup_multiple_gemm_dispatchers", "validate_kernel_config", "validate_trait_combo",
           "validate_warp_tile_config", "validate_wave_config"]

ValidationResult = ValidationResultBase


def _supported_dtypes() -> dict[tuple[str, str], dict[str, Any]]:
    """(type of A, of B): the type of the sums, and the warp tiles that any arch has for them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for tiles_of in get_arch_filter_data()["warp_tile_combos"].values():
        for types, tiles in tiles_of.items():
            a, b, sums = types.split("_")
            known = found.setdefault((a, b), {"acc": sums, "warp_tiles": []})["warp_tiles"]
            known += [tuple(tile) for tile in tiles if tuple(tile) not in known]
    return found


SUPPORTED_DTYPES = _supported_dtypes()
VALID_DTYPES = sorted({dtype for pair in SUPPORTED_DTYPES for dtype in pair})

# ---- registries and selection ----------------------------------------------------------------------------------------


class Registry:
    """Configs to choose from."""

    def __init__(self, name: str = "default", lib: DispatcherLib | None = None):
        self.name, self.lib = name, lib
        self._kernels: dict[str, KernelConfig] = {}

    def register_kernel(self, config: AnyGemmConfig) -> bool:
        """False where it is there already. A config that breaks a rule is corrected, with a warning that lists the changes;
        one that cannot be is kept, with a warning, and never chosen."""
        kernel, _, changes = auto_correct_kernel_config(config)
        _original.warn_of(changes, "a kernel config")
        checked = validate_kernel_config(kernel)
        if not checked:
            warnings.warn(f"a kernel config breaks rules: {'; '.join(checked.errors)}", stacklevel=2)
        new = kernel.name not in self._kernels
        self._kernels[kernel.name] = kernel
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

    def build(self, verbose: bool = False, max_workers: int | None = None) -> list[GemmSetupResult]:
        """Every kernel as a library."""
        return setup_multiple_gemm_dispatchers(self.get_kernels(), verbose=verbose, max_workers=max_workers)

    def to_library(self) -> LibraryRegistry:
        """The kernels to choose from: those that break no rule."""
        registry = LibraryRegistry(self.name)
        for name, config in self._kernels.items():
            if validate_kernel_config(config):
                registry.add(name)
        return registry

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(json.loads(self.to_library().export(statistics=True)), indent=indent)

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
    kernel_header: pathlib.Path | None = None  # what it was built from
    cached: bool = False
    corrections: list[str] = dataclasses.field(default_factory=list)
    error: str = ""


def setup_gemm_dispatcher(config: AnyGemmConfig, registry_name: str = "default", verbose: bool = False,
                          auto_rebuild: bool = True, auto_correct: bool = True) -> GemmSetupResult:
    """Checks the config, corrects it where it breaks rules (unless auto_correct=False), and builds its kernel unless it is
    cached. auto_rebuild is there for the original's callers: a kernel whose source has changed is always built anew."""
    return setup_multiple_gemm_dispatchers([config], registry_name, verbose, auto_correct=auto_correct)[0]


def setup_multiple_gemm_dispatchers(configs: Sequence[AnyGemmConfig], registry_name: str = "default",
                                    verbose: bool = False, max_workers: int | None = None,
                                    auto_correct: bool = True) -> list[GemmSetupResult]:
    """The same for many, with `max_workers` compilers at a time (None or 0: one for each CPU). In the order of the configs; a
    failure stops no other. A type or a pipeline that the arch does not have is refused, never exchanged."""
    results, ready = [], []
    for item in configs:
        given = KernelConfig.of(item)
        made = _original.mended(given) if auto_correct else _original.Mended(given, [], validate_kernel_config(given).errors)
        if verbose and made.changes:
            print_auto_correction(given, made.config, made.changes)
        results.append(GemmSetupResult(config=made.config, corrections=made.changes, error="; ".join(made.remaining)))
        if not made.remaining:
            ready.append(results[-1])
    outcomes = _original.build_libraries([result.config.to_library() for result in ready if result.config], max_workers,
                                         verbose)
    for result, outcome in zip(ready, outcomes):
        result.error = outcome.error
        if outcome.path is not None:
            result.success, result.library_path, result.cached = True, outcome.path, outcome.cached
            result.kernel_header = _original.source_of(outcome.path)
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
