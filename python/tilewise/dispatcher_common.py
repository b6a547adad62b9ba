# SPDX-License-Identifier: MIT
"""The functions that the original dispatcher's Python modules share, under their names: paths, the GPU's arch, checks of single choices,
coloured messages. Every rule is the library's: a choice is put into a config of the arch, and the config is checked.
"""
from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from . import _library
from ._compat_device import default_arch, detect_gpu_arch, device_of, host_cpu_arch
from ._library import variable
from .api import kernels
from .config import KernelConfig as LibraryConfig
from .config import check

__all__ = ["Colors", "ValidationResultBase", "auto_correct_trait", "auto_correct_wave", "cleanup_generated_kernels",
           "default_arch", "detect_gpu_arch", "device_of", "find_hipcc", "get_arch_filter_data", "get_build_dir",
           "get_ck_root", "get_codegen_dir", "get_dispatcher_root", "get_generated_kernels_dir", "host_cpu_arch",
           "print_error", "print_info", "print_phase", "print_success", "validate_trait_combo",
           "validate_warp_tile_config", "validate_wave_config"]

# ---- places ----------------------------------------------------------------------------------------------------------


def get_dispatcher_root() -> pathlib.Path:
    """The folder of this package."""
    return pathlib.Path(__file__).resolve().parent


def get_ck_root() -> pathlib.Path:
    """The folder above it: a source checkout, or site-packages."""
    return get_dispatcher_root().parents[1]


def get_build_dir() -> pathlib.Path:
    """Where built kernels are kept (TILEWISE_CACHE_DIR)."""
    given = variable("TILEWISE_CACHE_DIR")
    if given:
        return pathlib.Path(given)
    shared = variable("XDG_CACHE_HOME")  # as its specification says, one that is not absolute is ignored
    return (pathlib.Path(shared) if os.path.isabs(shared) else pathlib.Path.home() / ".cache") / "tilewise"


def get_generated_kernels_dir() -> pathlib.Path:
    """Where they can be found by the names that the original gives its libraries."""
    return get_build_dir() / "libraries"


def get_codegen_dir() -> pathlib.Path:
    """Where the source of every built kernel is: source.cpp beside it."""
    return get_build_dir() / "v1"


def cleanup_generated_kernels(gen_dir: Any = None) -> int:
    """Removes the libraries' names, and says how many; the cached kernels stay (`tilewise cache clear` removes them)."""
    folder = pathlib.Path(gen_dir) if gen_dir is not None else get_generated_kernels_dir()
    found = [*folder.glob("libdispatcher_*.so"), *folder.glob("libdispatcher_*.so.json")]
    for path in found:
        path.unlink(missing_ok=True)
    return sum(path.suffix == ".so" for path in found)


# ---- archs -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def get_arch_filter_data() -> dict[str, Any]:
    """The tables of all archs: supported_archs; warp_combos, the arrangements of waves of each; warp_tile_combos, the warp tiles
    for A_B_sums; trait_unsupported, (pipeline, epilogue, scheduler) that no arch has together."""
    archs = _library.call("tilewise_archs", None)["archs"]
    every = {word: sorted({item for arch in archs for item in arch[word]}) for word in ("pipelines", "epilogues")}
    pairs = {(pipeline, scheduler) for arch in archs for pipeline, spec in arch["pipelines"].items()
             for scheduler in spec["schedulers"]}
    schedulers = sorted({scheduler for _, scheduler in pairs} | {"interwave"})
    return {"supported_archs": [arch["name"] for arch in archs],
            "warp_combos": {arch["name"]: [numbers(text) for text in arch["waves"]] for arch in archs},
            "warp_tile_combos": {arch["name"]: {_types_key(types): [numbers(text) for text in tiles]
                                                for types, tiles in arch["warp_tiles"].items()} for arch in archs},
            "trait_unsupported": {(pipeline, epilogue, scheduler) for pipeline in every["pipelines"]
                                  for epilogue in every["epilogues"] for scheduler in schedulers
                                  if (pipeline, scheduler) not in pairs}}


def _types_key(types: str) -> str:
    """fp16 or fp8_bf8 of an arch file as the original has it: fp16_fp16_fp32."""
    a, _, b = types.partition("_")
    return f"{a}_{b or a}_{accumulator_of(a)}"


@functools.lru_cache(maxsize=32)
def accumulator_of(dtype: str) -> str:
    """The type that products of a type are summed up in."""
    return str(LibraryConfig({"op": "gemm", "dtype": dtype, "layout": "any", "pipeline": "basic_v1", "epilogue": "default",
                              "scheduler": "intrawave", "tile": "1x1x1", "wave": "1x1x1", "warp_tile": "1x1x1",
                              "arch": "none"}).dtype_acc)


def find_hipcc() -> str | None:
    """The compiler that HIPCC names, ROCm's or the one on PATH, for programs that ask; nothing here uses it."""
    places = [os.environ.get("HIPCC"), "/opt/rocm/bin/hipcc", shutil.which("hipcc")]
    return next((place for place in places if place and os.path.isfile(place)), None)


# ---- checks ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class ValidationResultBase:
    """The outcome of a check: what is wrong, what is only doubtful, and what would mend it."""

    is_valid: bool = True
    errors: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    suggested_fixes: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.is_valid

    def print_result(self, indent: str = "  ") -> None:
        print(f"{indent}{'valid' if self.is_valid else 'invalid'}")
        for kind, texts in (("error", self.errors), ("warning", self.warnings)):
            for text in texts:
                print(f"{indent}  {kind}: {text}")
        for field, value in self.suggested_fixes.items():
            print(f"{indent}  {field} -> {value}")


@functools.lru_cache(maxsize=64)
def _some_config(arch: str, dtype: str, pipeline: str | None = None) -> dict[str, Any]:
    """A valid config of the arch to put a choice into, with that pipeline where a rule set has one."""
    listed = kernels(op="gemm", arch=arch, dtype=dtype)
    return next((kernel for kernel in listed if kernel.config["pipeline"] == pipeline), listed[0]).config


def _triple(values: Sequence[int]) -> str:
    return "x".join(map(str, values))


def numbers(text: str) -> list[int]:
    """128x128x32 as numbers."""
    return [int(part) for part in text.split("x")]


def _judge(config: dict[str, Any], rules: set[str]) -> tuple[bool, str]:
    broken = [item for item in check(config).violations if item.rule in rules]
    return not broken, "; ".join(f"{item.rule}: have {item.have}, need {item.need}" for item in broken)


def validate_wave_config(wave_cfg: Sequence[int], arch: str, dtype: str = "fp16") -> tuple[bool, str]:
    """Whether the arch has this arrangement of waves, and if not, which it has."""
    return _judge({**_some_config(arch, dtype), "wave": _triple(wave_cfg)}, {"wave_listed", "positive"})


def validate_warp_tile_config(warp_cfg: Sequence[int], arch: str, dtype: str = "fp16") -> tuple[bool, str]:
    """Whether the arch has this warp tile for the type, and if not, which it has."""
    return _judge({**_some_config(arch, dtype), "warp_tile": _triple(warp_cfg)}, {"warp_tile_listed", "positive"})


def validate_trait_combo(pipeline: str, epilogue: str, scheduler: str, arch: str | None = None,
                         dtype: str = "fp16") -> tuple[bool, str]:
    """Whether a pipeline, an epilogue and a scheduler go together on the arch."""
    config = {**_some_config(arch or default_arch(), dtype, pipeline), "pipeline": pipeline, "epilogue": epilogue,
              "scheduler": scheduler}
    return _judge(config, {"pipeline", "epilogue", "interwave", "scheduler"})


def auto_correct_wave(wave_cfg: Sequence[int], arch: str, dtype: str = "fp16") -> list[int]:
    """The arrangement of waves itself where the arch has it, else the one that the library takes instead."""
    if validate_wave_config(wave_cfg, arch, dtype)[0]:
        return list(wave_cfg)
    mended = check({**_some_config(arch, dtype), "wave": _triple(wave_cfg)}, fix=True).corrected
    return numbers((mended or _some_config(arch, dtype))["wave"])


def auto_correct_trait(pipeline: str, scheduler: str, arch: str | None = None, dtype: str = "fp16") -> tuple[str, str]:
    """(pipeline, scheduler), corrected where they do not go together."""
    config = {**_some_config(arch or default_arch(), dtype, pipeline), "pipeline": pipeline, "scheduler": scheduler}
    mended = check(config, fix=True).corrected or config
    return mended["pipeline"], mended["scheduler"]


# ---- messages --------------------------------------------------------------------------------------------------------


class Colors:
    """Escape codes for a terminal; plain() is the text itself where the output is no terminal or NO_COLOR is set."""

    RED, GREEN, YELLOW, BLUE, CYAN, BOLD, RESET = (f"\033[{code}m" for code in ("31", "32", "33", "34", "36", "1", "0"))

    @staticmethod
    def enabled() -> bool:
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @classmethod
    def paint(cls, text: str, color: str) -> str:
        return f"{color}{text}{cls.RESET}" if cls.enabled() else text

    red = functools.partialmethod(paint, color=RED)
    green = functools.partialmethod(paint, color=GREEN)
    yellow = functools.partialmethod(paint, color=YELLOW)
    cyan = functools.partialmethod(paint, color=CYAN)
    bold = functools.partialmethod(paint, color=BOLD)


def print_phase(number: int | str, description: str) -> None:
    """The heading of a step."""
    print(f"\n{Colors.bold(f'[{number}] {description}')}")


def print_success(message: str) -> None:
    """A line for what went well."""
    print(f"  {Colors.green('OK')} {message}")


def print_error(message: str) -> None:
    """A line for what did not."""
    print(f"  {Colors.red('FAIL')} {message}")


def print_info(message: str) -> None:
    """A line of any other kind."""
    print(f"  {message}")
