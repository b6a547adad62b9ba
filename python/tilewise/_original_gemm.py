# SPDX-License-Identifier: MIT
"""The original's GEMM config, KernelConfig of ctypes_utils: its fields in the library's words and back, checked and
corrected by the library.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from . import _original
from .config import KernelConfig as LibraryConfig
from .dispatcher_common import ValidationResultBase, default_arch, numbers
from .problem import Problem

_LETTERS = {"row": "r", "col": "c"}
_WORDS = {"r": "row", "c": "col"}


@dataclasses.dataclass
class KernelConfig(_original.NamedConfig):
    """How to compute, in the original's fields: `wave_*` says how many waves share a tile, `warp_*` is the warp tile."""

    dtype_a: str = "fp16"
    dtype_b: str | None = None  # dtype_a's unless given
    dtype_c: str | None = None  # the library's for dtype_a unless given
    dtype_acc: str | None = None
    layout_a: str = "row"
    layout_b: str = "col"
    layout_c: str = "row"
    tile_m: int = 128
    tile_n: int = 128
    tile_k: int = 32
    wave_m: int = 2
    wave_n: int = 2
    wave_k: int = 1
    warp_m: int = 32
    warp_n: int = 32
    warp_k: int = 16
    pipeline: str = "compv4"
    scheduler: str = "intrawave"
    epilogue: str = "cshuffle"
    pad_m: bool = True
    pad_n: bool = True
    pad_k: bool = True
    gfx_arch: str | None = None  # the GPU here, or the CPU where there is none
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # further fields, by the library's names

    def __post_init__(self) -> None:
        self.gfx_arch = self.gfx_arch or default_arch()
        for name in ("layout_a", "layout_b", "layout_c"):
            if getattr(self, name) not in _LETTERS:
                raise ValueError(f"{name}: {getattr(self, name)!r}; need row or col")

    @property
    def layout(self) -> str:
        return "".join(_LETTERS[word] for word in (self.layout_a, self.layout_b, self.layout_c))

    @property
    def tile_str(self) -> str:
        return f"{self.tile_m}x{self.tile_n}x{self.tile_k}"

    @property
    def wave_str(self) -> str:
        return f"{self.wave_m}x{self.wave_n}x{self.wave_k}"

    @property
    def warp_str(self) -> str:
        return f"{self.warp_m}x{self.warp_n}x{self.warp_k}"

    def to_library(self) -> dict[str, Any]:
        pads = "".join(letter for letter in "mnk" if getattr(self, f"pad_{letter}"))
        config = {"op": "gemm", "dtype": self.dtype_a, "layout": self.layout, "pipeline": self.pipeline,
                  "epilogue": self.epilogue, "scheduler": self.scheduler, "tile": self.tile_str, "wave": self.wave_str,
                  "warp_tile": self.warp_str, "arch": self.gfx_arch}
        typed = {"dtype_b": self.dtype_b, "dtype_out": self.dtype_c, "dtype_acc": self.dtype_acc}
        config.update({key: value for key, value in typed.items() if value is not None})
        if pads != "mnk":
            config["pad"] = pads or "none"
        return {**config, **self.options}

    @classmethod
    def from_library(cls, config: LibraryConfig) -> KernelConfig:
        """Of the library's config; a layout of "any" reads as rcr."""
        values = dict(config.values)
        lead = {"op", "dtype", "layout", "pipeline", "epilogue", "scheduler", "tile", "wave", "warp_tile", "arch", "pad",
                "dtype_b", "dtype_out", "dtype_acc"}
        layout = "rcr" if values["layout"] == "any" else values["layout"]
        shapes = {f"{ours}_{letter}": size for ours, theirs in (("tile", "tile"), ("wave", "wave"), ("warp", "warp_tile"))
                  for letter, size in zip("mnk", numbers(values[theirs]))}
        pad = values.get("pad", "mnk")
        fields: dict[str, Any] = {f"layout_{x}": _WORDS[y] for x, y in zip("abc", layout)}
        fields.update(shapes, **{f"pad_{letter}": letter in pad and pad != "none" for letter in "mnk"})
        return cls(dtype_a=values["dtype"], dtype_b=values.get("dtype_b"), dtype_c=values.get("dtype_out"),
                   dtype_acc=values.get("dtype_acc"), pipeline=values["pipeline"], scheduler=values["scheduler"],
                   epilogue=values["epilogue"], gfx_arch=values["arch"],
                   options={key: value for key, value in values.items() if key not in lead}, **fields)

    def problem(self, m: int, n: int, k: int) -> Problem:
        fields: dict[str, Any] = {"m": m, "n": n, "k": k, "dtype": self.dtype_a, "layout": self.layout}
        fields.update({"b": self.dtype_b} if self.dtype_b else {}, **({"out": self.dtype_c} if self.dtype_c else {}))
        return Problem("gemm", **fields)


def validate_kernel_config(config: KernelConfig) -> ValidationResultBase:
    """Every rule of the library that the config breaks, and what would mend it."""
    result: ValidationResultBase = _original.validation(config.to_library())
    return result


def auto_correct_kernel_config(config: KernelConfig, verbose: bool = False) -> tuple[KernelConfig, bool, list[str]]:
    """(the nearest valid config, whether it differs, each change in words). What cannot be mended stays as it is."""
    mended, changes, _ = _original.corrected(config.to_library())
    if not changes:
        return config, False, []
    result = KernelConfig.from_library(LibraryConfig(mended))
    if verbose:
        print_auto_correction(config, result, changes)
    return result, True, changes


def print_kernel_config(config: KernelConfig, title: str = "kernel config") -> None:
    """A config in the library's words, a field a line."""
    print(f"{title}:")
    for key, value in config.to_library().items():
        print(f"  {key:12} {value}")


def print_auto_correction(original: KernelConfig, corrected: KernelConfig, changes: Sequence[str],
                          indent: str = "  ") -> None:
    """What auto_correct_kernel_config changed, a change a line."""
    print(f"{indent}corrected for {corrected.gfx_arch}:")
    for change in changes:
        print(f"{indent}  {change}")
