# SPDX-License-Identifier: MIT
"""The original's GEMM config, KernelConfig of ctypes_utils: its fields in the library's words and back, checked and
corrected by the library.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from . import _original
from ._library import UsageError
from .config import KernelConfig as LibraryConfig
from .dispatcher_common import ValidationResultBase, default_arch, numbers
from .problem import Problem

_LETTERS = {"row": "r", "col": "c"}
_WORDS = {"r": "row", "c": "col"}
_VARIANTS = ("standard", "preshuffle", "multi_d")
_PIPELINES = {"preshufflev1": "preshuffle", "preshufflev2": "preshuffle"}  # the original's names: the library's


@dataclasses.dataclass
class KernelConfig(_original.NamedConfig):
    """How to compute, in the original's fields: `wave_*` says how many waves share a tile, `warp_*` is the warp tile.
    `block_size` is nominal, as in the original: the waves decide. `variant` is standard, multi_d (the same kernels: what
    follows the sums belongs to the problem) or preshuffle, whose pipeline has B packed."""

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
    block_size: int = 256
    pipeline: str = "compv4"
    scheduler: str = "intrawave"
    epilogue: str = "cshuffle"
    pad_m: bool = True
    pad_n: bool = True
    pad_k: bool = True
    gfx_arch: str | None = None  # the GPU here, or the CPU where there is none
    variant: str = "standard"
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # further fields, by the library's names
    _words: ClassVar[Mapping[str, str]] = {f"warp_tile_{letter}": f"warp_{letter}" for letter in "mnk"}

    def __post_init__(self) -> None:
        self._unwrap()
        self.gfx_arch = self.gfx_arch or default_arch()
        for name in ("layout_a", "layout_b", "layout_c"):
            if getattr(self, name) not in _LETTERS:
                raise ValueError(f"{name}: {getattr(self, name)!r}; need row or col")
        if self.variant not in _VARIANTS:
            raise ValueError(f"variant: {self.variant!r}; need one of {', '.join(_VARIANTS)}")
        self.pipeline = _PIPELINES.get(self.pipeline, self.pipeline)
        if self.variant == "preshuffle":
            self.pipeline = "preshuffle"
        self._fill_types()

    def _fill_types(self) -> None:
        self.dtype_b = self.dtype_b or self.dtype_a
        try:
            whole = LibraryConfig(self.to_library())
        except UsageError:  # a word that is none; checking the config says so
            return
        self.dtype_c, self.dtype_acc = str(whole.dtype_out), str(whole.dtype_acc)

    @property
    def layout(self) -> str:
        return "".join(_LETTERS[word] for word in (self.layout_a, self.layout_b, self.layout_c))

    @property
    def tile_str(self) -> str:
        return self._triple("tile")

    @property
    def wave_str(self) -> str:
        return self._triple("wave")

    @property
    def warp_str(self) -> str:
        return self._triple("warp")

    def print_config(self, indent: str = "  ") -> None:
        """The fields, a few to a line."""
        print(f"{indent}{self.name}")
        print(f"{indent}  types {self.dtype_a} {self.dtype_b} {self.dtype_c}, sums {self.dtype_acc}; layout {self.layout}")
        print(f"{indent}  tile {self.tile_str}, waves {self.wave_str}, warp tile {self.warp_str}")
        print(f"{indent}  {self.pipeline}, {self.scheduler}, {self.epilogue}; {self.variant} on {self.gfx_arch}")

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
        """Makes one from the library's config. A layout of "any" reads as rcr."""
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
        if self.pipeline == "preshuffle":
            fields["packed_b"] = 1
        fields.update({"b": self.dtype_b} if self.dtype_b else {}, **({"out": self.dtype_c} if self.dtype_c else {}))
        return Problem("gemm", **fields)


AnyGemmConfig = KernelConfig | Mapping[str, Any]


def validate_kernel_config(config: AnyGemmConfig) -> ValidationResultBase:
    """Every rule of the library that the config breaks, and what would mend it, in the original's words."""
    result: ValidationResultBase = _original.validation(KernelConfig.of(config))
    return result


def auto_correct_kernel_config(config: AnyGemmConfig, verbose: bool = False) -> tuple[KernelConfig, bool, list[str]]:
    """(the nearest valid config, whether it differs, each change in words). Types and pipeline are never changed; what cannot
    be mended stays as it is."""
    given = KernelConfig.of(config)
    result = _original.mended(given)
    if verbose and result.changes:
        print_auto_correction(given, result.config, result.changes)
    return result.config, bool(result.changes), result.changes


def preshuffle_weight_matrix(B: Any, warp_tile_n: int, warp_tile_k: int, arch: str | None = None) -> Any:
    """B (K, N) as runners of a preshuffle kernel take it, which is as it is: each kernel has an order of its own, in which its
    runner packs B. The sizes are checked as in the original."""
    for name, size, part in (("N", B.shape[1], warp_tile_n), ("K", B.shape[0], warp_tile_k)):
        if size % part != 0:
            raise ValueError(f"{name} is {size}; need a multiple of the warp tile's {part}")
    return B


def print_kernel_config(config: KernelConfig, title: str = "kernel config") -> None:
    """A config in the library's words, a field a line."""
    print(f"{title}:")
    for key, value in config.to_library().items():
        print(f"  {key:12} {value}")


def print_auto_correction(original: KernelConfig, corrected: KernelConfig, changes: Sequence[str],
                          indent: str = "  ") -> None:
    """The changes of auto_correct_kernel_config, one a line."""
    print(f"{indent}corrected for {corrected.gfx_arch}:" if changes else f"{indent}nothing to correct")
    for change in changes:
        print(f"{indent}  {change}")
