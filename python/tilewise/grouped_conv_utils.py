# SPDX-License-Identifier: MIT
"""Grouped convolution as the original dispatcher's module of this name has it: configs and problems in its fields, libraries
by path, runners on NumPy arrays.

    config = get_grouped_conv_default_config(variant="forward", dtype="bf16")
    (path,) = setup_multiple_grouped_conv_dispatchers([config])
    result = GpuGroupedConvRunner(path).run(x, w, GroupedConvProblem(N=1, C=64, K=64, G=2, Hi=8, Wi=8, Y=3, X=3))

Operands: forward run(X, W, problem), bwd_data run(dY, W, problem), bwd_weight run(X, dY, problem). A config that breaks a
rule or a kernel that cannot be built is a failure with its reason, never another kernel.
"""
from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _original
from ._host_runner import HostRunner
from ._library import TilewiseError
from ._original_conv import (GroupedConvDataType, GroupedConvKernelConfig, GroupedConvProblem,
                             GroupedConvValidationResult, auto_correct_grouped_conv_config,
                             get_grouped_conv_default_config, validate_grouped_conv_config, variant_of)
from .dispatcher import Dispatcher
from .dispatcher_common import detect_gpu_arch
from .registry import Registry

__all__ = ["GpuGroupedConvRunner", "GroupedConvDataType", "GroupedConvKernelConfig", "GroupedConvProblem",
           "GroupedConvRegistry", "GroupedConvResult", "GroupedConvValidationResult",
           "auto_correct_grouped_conv_config", "detect_gpu_arch", "format_grouped_conv_summary",
           "get_grouped_conv_default_config", "setup_multiple_grouped_conv_dispatchers", "validate_grouped_conv_config"]


@dataclasses.dataclass
class GroupedConvResult:
    """What a run gave. `output` has the kernel's output type; on failure success is False and error says why."""

    success: bool = False
    time_ms: float = 0.0
    tflops: float = 0.0
    output: Any = None
    error: str = ""


class GpuGroupedConvRunner:
    """Runs the kernel of one library on NumPy arrays, on the device of its arch: a GPU or the CPU. Making one opens nothing:
    the first run does, so that a process may build in forked workers and run afterwards."""

    def __init__(self, lib_path: Any, warmup: int = 1, repeat: int = 3):
        self.lib_path = pathlib.Path(lib_path)
        self._warmup, self._repeat = warmup, repeat
        self._runner: HostRunner | None = None
        self.init_error = ""

    def _ensure_initialized(self) -> HostRunner:
        """Opens the device and finds the kernel; run() calls it."""
        if self._runner is None:
            self._runner = HostRunner(_original.kernel_of(self.lib_path), self._warmup, self._repeat)
        try:
            self._runner.open()
        except TilewiseError as error:
            self.init_error = str(error)
            raise
        return self._runner

    def is_available(self) -> bool:
        """Whether the library is there and its device can be opened; opens it."""
        try:
            self._ensure_initialized()
        except (TilewiseError, OSError):
            return False
        return True

    def run(self, first: Any, second: Any, prob: GroupedConvProblem) -> GroupedConvResult:
        """forward: X, W; bwd_data: dY, W; bwd_weight: X, dY. The problem's direction must be the kernel's."""
        try:
            runner = self._ensure_initialized()
            kernel = runner.kernel
            direction, _ = variant_of(kernel.op)
            if direction != prob.direction:
                raise ValueError(f"the problem's direction is {prob.direction}, the kernel {kernel.name} is {direction}")
            layout = None if kernel.layout == "any" else kernel.layout
            problem = prob.problem(kernel.dtype, layout)
            # The library's operands of the backward pass of the weights are dY, then X.
            operands = (second, first) if direction == "bwd_weight" else (first, second)
            output, took = runner.run(problem, *operands)
        except (TilewiseError, TypeError, ValueError, OSError) as error:
            return GroupedConvResult(error=str(error))
        return GroupedConvResult(True, took, problem.flops / took * 1e-9, output)

    def cleanup(self) -> None:
        if self._runner is not None:
            self._runner.close()

    def __repr__(self) -> str:
        return f"GpuGroupedConvRunner({self.lib_path.name!r}{'' if self._runner is None else ', open'})"


def setup_multiple_grouped_conv_dispatchers(configs: Sequence[GroupedConvKernelConfig], verbose: bool = False,
                                            max_workers: int = 0) -> list[pathlib.Path | None]:
    """The library of each config, built with `max_workers` compilers at a time (0: one for each CPU) unless it is cached.
    None where it cannot be built; with verbose the reason is printed. Opens no device."""
    return [outcome.path for outcome in build_grouped_conv_libraries(configs, verbose, max_workers)]


def build_grouped_conv_libraries(configs: Sequence[GroupedConvKernelConfig], verbose: bool = False,
                                 max_workers: int = 0) -> list[_original.BuildOutcome]:
    """The same with the reason of every failure: its command and log."""
    return _original.build_libraries([config.to_library() for config in configs], max_workers, verbose)


class GroupedConvRegistry:
    """Configs to choose from."""

    def __init__(self, name: str = "default"):
        self.name = name
        self._kernels: dict[str, GroupedConvKernelConfig] = {}

    def add(self, config: GroupedConvKernelConfig) -> bool:
        """False where it is there already; a config that breaks a rule is a ValueError."""
        checked = validate_grouped_conv_config(config)
        if not checked:
            raise ValueError("; ".join(checked.errors))
        new = config.name not in self._kernels
        self._kernels[config.name] = config
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
        """The config for a problem, or None where none may run it: by the library's ranking, or the first of the names that
        heuristic(problem) gives, exactly as they are."""
        wanted = [config for config in self.kernels if config.variant == problem.direction]
        if not wanted:
            return None
        registry = Registry(self.name)
        for config in wanted:
            registry.add(config.name)
        rank = None if heuristic is None else lambda _, names, times: [x for x in heuristic(problem) if x in names]
        chooser = Dispatcher(None, arch=wanted[0].arch, registry=registry, rank=rank)
        try:
            plan = chooser.select(problem.problem(wanted[0].dtype, wanted[0].layout))
        except TilewiseError:  # the heuristic names none that may run it
            return None
        return self._kernels[plan.kernel] if plan.kernel else None

    def _only(self, keep: Callable[[GroupedConvKernelConfig], bool]) -> GroupedConvRegistry:
        chosen = GroupedConvRegistry(self.name)
        chosen._kernels = {name: config for name, config in self._kernels.items() if keep(config)}
        return chosen

    def filter_by_variant(self, variant: str) -> GroupedConvRegistry:
        wanted, _ = variant_of(variant)
        return self._only(lambda config: config.variant == wanted)

    def filter_by_arch(self, arch: str) -> GroupedConvRegistry:
        return self._only(lambda config: config.arch == arch)

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "kernels": [config.to_json_obj() for config in self.kernels]}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> GroupedConvRegistry:
        data = json.loads(text)
        registry = cls(data["name"])
        for item in data["kernels"]:
            registry.add(GroupedConvKernelConfig.from_dict({key: value for key, value in item.items() if key != "name"}))
        return registry

    def build(self, verbose: bool = False, max_workers: int = 0) -> dict[Any, GpuGroupedConvRunner]:
        """A runner for every config that could be built, by its name; (variant, dimensions) finds the first of each."""
        runners: dict[Any, GpuGroupedConvRunner] = {}
        for config, path in zip(self.kernels, setup_multiple_grouped_conv_dispatchers(self.kernels, verbose, max_workers)):
            if path is not None:
                runners[config.name] = GpuGroupedConvRunner(path)
                runners.setdefault((config.variant, config.ndim_spatial), runners[config.name])
        return runners

    def print(self) -> None:
        print(f"{self.name}: {len(self)} kernels")
        for name in self._kernels:
            print(f"  {name}")

    def __repr__(self) -> str:
        return f"GroupedConvRegistry({self.name!r}, <{len(self)} kernels>)"


def format_grouped_conv_summary(config: GroupedConvKernelConfig | GroupedConvProblem) -> str:
    """A few lines about a config or a problem."""
    if isinstance(config, GroupedConvProblem):
        return (f"{config.direction}: {config.problem('fp16').text}\n"
                f"  input {config.input_shape()}, weight {config.weight_shape()}, output {config.output_shape()}\n"
                f"  {config.flops / 1e9:.3f} GFLOP")
    return f"{config.variant} {config.ndim_spatial}d {config.dtype} {config.layout} on {config.arch}\n  {config.name}"
