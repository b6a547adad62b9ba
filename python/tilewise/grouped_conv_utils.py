# SPDX-License-Identifier: MIT
"""Grouped convolution as the original dispatcher's module of this name has it: configs and problems in its fields, libraries
by path, runners on NumPy arrays.

    config = get_grouped_conv_default_config(variant="forward", dtype="bf16")
    (path,) = setup_multiple_grouped_conv_dispatchers([config])
    result = GpuGroupedConvRunner(path).run(x, w, GroupedConvProblem(N=1, C=64, K=64, G=2, Hi=8, Wi=8, Y=3, X=3))

Operands: forward run(X, W, problem), bwd_data run(dY, W, problem), bwd_weight run(X, dY, problem). A config that breaks a
rule is corrected, with a warning that lists the changes; a type or a pipeline that the arch does not have, and a kernel that
cannot be built, are failures with their reason, never another kernel.
"""
from __future__ import annotations

import json
import pathlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _original
from ._original_conv import (AnyConvConfig, GroupedConvDataType, GroupedConvKernelConfig, GroupedConvValidationResult,
                             auto_correct_grouped_conv_config, config_of, get_grouped_conv_default_config,
                             validate_grouped_conv_config)
from ._original_conv_problem import GroupedConvProblem, GroupedConvProblemC, variant_of
from ._original_conv_runner import GpuGroupedConvRunner, GroupedConvDispatcherLib, GroupedConvResult
from .dispatcher import Dispatcher
from .dispatcher_common import detect_gpu_arch
from .registry import Registry

__all__ = ["GpuGroupedConvRunner", "GroupedConvCodegenRunner", "GroupedConvDataType", "GroupedConvDispatcherLib",
           "GroupedConvKernelConfig", "GroupedConvProblem", "GroupedConvProblemC", "GroupedConvRegistry",
           "GroupedConvResult", "GroupedConvValidationResult", "auto_correct_grouped_conv_config",
           "build_grouped_conv_libraries", "detect_gpu_arch", "format_grouped_conv_summary",
           "get_grouped_conv_default_config", "setup_multiple_grouped_conv_dispatchers", "validate_grouped_conv_config"]


def setup_multiple_grouped_conv_dispatchers(configs: Sequence[AnyConvConfig], verbose: bool = False,
                                            max_workers: int | None = None) -> list[pathlib.Path | None]:
    """The library of each config, built with `max_workers` compilers at a time (None or 0: one for each CPU) unless it is
    cached. A config that breaks a rule is corrected, with a warning that lists the changes; a type or a pipeline that the arch
    does not have is refused. None where it cannot be built; with verbose the reason is printed. Opens no device."""
    made = [_original.mended(config_of(config)) for config in configs]
    for item in made:
        _original.warn_of(item.changes, "a convolution's config")
        if verbose and item.remaining:
            print(f"  refused: {item.config.name}: {'; '.join(item.remaining)}")
    ready = [item.config for item in made if not item.remaining]
    built = iter(build_grouped_conv_libraries(ready, verbose, max_workers))
    return [None if item.remaining else next(built).path for item in made]


def build_grouped_conv_libraries(configs: Sequence[AnyConvConfig], verbose: bool = False,
                                 max_workers: int | None = None) -> list[_original.BuildOutcome]:
    """The same for exactly these configs, with the reason of every failure: its command and log."""
    return _original.build_libraries([config_of(config).to_library() for config in configs], max_workers, verbose)


class GroupedConvCodegenRunner:
    """Builds libraries, under the original's name for it."""

    def __init__(self, max_workers: int | None = None):
        self.max_workers = max_workers

    def generate_and_compile_parallel(self, configs: Sequence[AnyConvConfig],
                                      verbose: bool = False) -> list[pathlib.Path | None]:
        return setup_multiple_grouped_conv_dispatchers(configs, verbose, self.max_workers)


class GroupedConvRegistry:
    """Configs to choose from."""

    def __init__(self, name: str = "default"):
        self.name = name
        self._kernels: dict[str, GroupedConvKernelConfig] = {}

    def add(self, config: AnyConvConfig) -> bool:
        """False where it is there already. A config that breaks a rule is corrected, with a warning that lists the changes;
        one that cannot be is kept, with a warning, and never chosen."""
        made = _original.mended(config_of(config))
        _original.warn_of(made.changes, "a convolution's config")
        if made.remaining:
            warnings.warn(f"a convolution's config breaks rules: {'; '.join(made.remaining)}", stacklevel=2)
        new = made.config.name not in self._kernels
        self._kernels[made.config.name] = made.config
        return new

    @property
    def kernels(self) -> list[GroupedConvKernelConfig]:
        return list(self._kernels.values())

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[GroupedConvKernelConfig]:
        return iter(self.kernels)

    def select(self, problem: GroupedConvProblem,
               heuristic: Callable[[GroupedConvProblem], Sequence[str]] | None = None) -> GroupedConvKernelConfig | None:
        """The config for a problem, or None where none may run it: the first whose name has one of the texts that
        heuristic(problem) gives, in their order, else by the library's ranking."""
        registry = Registry(self.name)
        wanted = [config for config in self.kernels
                  if config.variant == problem.direction and validate_grouped_conv_config(config)]
        if not wanted:
            return None
        for config in wanted:
            registry.add(config.name)
        plan = Dispatcher(None, arch=wanted[0].arch, registry=registry).select(
            problem.problem(wanted[0].dtype, wanted[0].layout))
        candidates = [item.name for item in plan.candidates]
        hints = heuristic(problem) if heuristic is not None else []
        hinted = [name for hint in hints for name in candidates if hint in name]
        chosen = hinted[0] if hinted else plan.kernel
        return self._kernels[chosen] if chosen else None

    def _only(self, keep: Callable[[GroupedConvKernelConfig], bool], word: str) -> GroupedConvRegistry:
        chosen = GroupedConvRegistry(f"{self.name}_{word}")
        chosen._kernels = {name: config for name, config in self._kernels.items() if keep(config)}
        return chosen

    def filter_by_variant(self, variant: str) -> GroupedConvRegistry:
        wanted, _ = variant_of(variant)
        return self._only(lambda config: config.variant == wanted, wanted)

    def filter_by_arch(self, arch: str) -> GroupedConvRegistry:
        return self._only(lambda config: config.arch == arch, arch)

    def to_json(self, indent: int | None = 2) -> str:
        return json.dumps({"name": self.name, "kernels": [config.to_json_obj() for config in self.kernels]}, indent=indent)

    @classmethod
    def from_json(cls, json_str: str) -> GroupedConvRegistry:
        """Reads the form of to_json, also the original's. Fields that it leaves out come from a listed kernel."""
        data = json.loads(json_str)
        registry = cls(data.get("name", "imported"))
        for item in data.get("kernels", []):
            registry.add({key: value for key, value in item.items() if key != "name"})
        return registry

    def build(self, verbose: bool = False, max_workers: int | None = None) -> dict[Any, GpuGroupedConvRunner]:
        """A runner for every config that could be built, by its name; (variant, dimensions) finds the first of each."""
        runners: dict[Any, GpuGroupedConvRunner] = {}
        for config, path in zip(self.kernels, setup_multiple_grouped_conv_dispatchers(self.kernels, verbose, max_workers)):
            if path is not None:
                runners[config.name] = GpuGroupedConvRunner(path)
                runners.setdefault((config.variant, config.ndim_spatial), runners[config.name])
        return runners

    def print_registry(self, indent: str = "  ") -> None:
        print(f"{indent}{self.name}: {len(self)} kernels")
        for name, config in self._kernels.items():
            print(f"{indent}  {name}{'' if validate_grouped_conv_config(config) else ', which breaks rules'}")

    def __repr__(self) -> str:
        return f"GroupedConvRegistry({self.name!r}, <{len(self)} kernels>)"


def format_grouped_conv_summary(config: AnyConvConfig | GroupedConvProblem) -> str:
    """A few lines about a config or a problem."""
    if isinstance(config, GroupedConvProblem):
        return (f"{config.direction}: {config.problem('fp16').text}\n"
                f"  input {config.input_shape()}, weight {config.weight_shape()}, output {config.output_shape()}\n"
                f"  {config.gflops:.3f} GFLOP")
    made = config_of(config)
    return f"{made.variant} {made.ndim_spatial}d {made.dtype} {made.layout} on {made.arch}\n  {made.name}"
