# SPDX-License-Identifier: MIT
"""The original's CodegenRunner. The library makes a kernel's source when it builds it, so that nothing has to be generated
ahead: a run says which kernels there are, and the build methods build.
"""
from __future__ import annotations

import dataclasses
import pathlib
import time
from collections.abc import Sequence
from typing import Any

from . import _original
from ._library import TilewiseError
from ._original_gemm import AnyGemmConfig, KernelConfig
from .api import kernels
from .config import KernelConfig as LibraryConfig
from .dispatcher_common import default_arch, get_codegen_dir, get_generated_kernels_dir


@dataclasses.dataclass
class CodegenResult:
    """The kernels of a run by name, or in stderr the reason why there are none."""

    success: bool
    output_dir: pathlib.Path
    variant: str
    stdout: str = ""
    stderr: str = ""
    kernel_count: int = 0
    elapsed_seconds: float = 0.0
    instance_names: list[str] = dataclasses.field(default_factory=list)

    def get_generated_kernels(self) -> list[pathlib.Path]:
        """The libraries that are built."""
        return sorted(self.output_dir.glob("libdispatcher_gemm_*.so"))

    def print_instances(self, prefix: str = "    ") -> None:
        for name in self.instance_names:
            print(f"{prefix}{name}")


class CodegenRunner:
    """The GEMM kernels of a type, a layout and an arch."""

    VARIANTS = ["standard", "preshuffle", "multi_d"]

    def __init__(self, codegen_path: Any = None, output_dir: Any = None, datatype: str = "fp16", layout: str = "rcr",
                 gpu_target: str | None = None, max_workers: int | None = None):
        self.codegen_path = pathlib.Path(codegen_path) if codegen_path else get_codegen_dir()
        self.output_dir = pathlib.Path(output_dir) if output_dir else get_generated_kernels_dir()
        self.datatype, self.layout, self.max_workers = datatype, layout, max_workers
        self.gpu_target = gpu_target or default_arch()

    def generate(self, variant: str = "standard", output_dir: Any = None, rule_set: str = "default") -> CodegenResult:
        """The kernels of a rule set: for preshuffle those of its pipeline, else the others."""
        start = time.perf_counter()
        result = CodegenResult(False, pathlib.Path(output_dir or self.output_dir), variant)
        if variant not in self.VARIANTS:
            result.stderr = f"variant: {variant!r}; need one of {', '.join(self.VARIANTS)}"
            return result
        try:
            listed = kernels(op="gemm", arch=self.gpu_target, dtype=self.datatype, rule_set=rule_set)
        except TilewiseError as error:
            result.stderr = str(error)
            return result
        result.instance_names = [kernel.name for kernel in listed
                                 if kernel.available and kernel.config["layout"] in (self.layout, "any")
                                 and (kernel.config["pipeline"] == "preshuffle") == (variant == "preshuffle")]
        result.kernel_count = len(result.instance_names)
        result.success = result.kernel_count > 0
        result.stderr = "" if result.success else f"{self.gpu_target} has no such kernels"
        result.elapsed_seconds = time.perf_counter() - start
        return result

    def generate_all(self, output_dir: Any = None) -> list[CodegenResult]:
        return [self.generate(variant, output_dir) for variant in self.VARIANTS]

    generate_all_parallel = generate_all

    def generate_from_config(self, config: AnyGemmConfig, output_dir: Any = None) -> CodegenResult:
        """One kernel, corrected where it breaks a rule."""
        given = KernelConfig.of(config)
        made = _original.mended(given)
        return CodegenResult(not made.remaining, pathlib.Path(output_dir or self.output_dir), given.variant,
                             "\n".join(made.changes), "\n".join(made.remaining), int(not made.remaining),
                             instance_names=[] if made.remaining else [made.config.name])

    def generate_configs_parallel(self, configs: Sequence[AnyGemmConfig], output_dir: Any = None) -> list[CodegenResult]:
        return [self.generate_from_config(config, output_dir) for config in configs]

    generate_batch_parallel = generate_configs_parallel

    def generate_preselected(self, preset: str = "default", output_dir: Any = None) -> CodegenResult:
        """The kernels of a rule set by its name."""
        return self.generate("standard", output_dir, preset)

    def ensure_kernels_exist(self) -> bool:
        return self.generate().success

    def list_kernels(self) -> list[str]:
        return self.generate().instance_names

    def categorize_kernels(self) -> dict[str, list[str]]:
        """The kernels of each pipeline."""
        found: dict[str, list[str]] = {}
        for name in self.list_kernels():
            found.setdefault(LibraryConfig(name).pipeline, []).append(name)
        return found

    def build_libraries_parallel(self, configs: Sequence[AnyGemmConfig], verbose: bool = False) -> list[pathlib.Path | None]:
        """The library of each config, corrected where it breaks a rule; None where it cannot be built."""
        made = [_original.mended(KernelConfig.of(config)) for config in configs]
        ready = [item.config.to_library() for item in made if not item.remaining]
        built = iter(_original.build_libraries(ready, self.max_workers, verbose))
        return [None if item.remaining else next(built).path for item in made]


def find_matching_kernel_header(config: AnyGemmConfig) -> pathlib.Path | None:
    """The source of the library of exactly this config; None where it is not built."""
    path = get_generated_kernels_dir() / _original.exposed_name(KernelConfig.of(config).name)
    return _original.source_of(path) if path.exists() else None
