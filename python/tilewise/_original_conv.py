# SPDX-License-Identifier: MIT
"""The original's grouped-convolution config, of grouped_conv_utils: its fields in the library's words and back, checked and
corrected by the library.
"""
from __future__ import annotations

import dataclasses
import enum
import functools
import re
from collections.abc import Mapping
from typing import Any

from . import _original
from ._answers import Kernel
from ._library import TilewiseError
from ._original_conv_problem import OPS, VARIANTS, variant_of
from .api import kernels
from .config import KernelConfig as LibraryConfig
from .dispatcher_common import ValidationResultBase, default_arch, numbers
from .problem import Problem


class GroupedConvDataType(str, enum.Enum):
    """The types of a convolution's input."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    INT8 = "int8"


@functools.lru_cache(maxsize=4)  # a sweep asks for the same ones over and over
def _listed(op: str, arch: str, dtype: str, rule_set: str) -> list[Kernel]:
    return kernels(op=op, arch=arch, dtype=dtype, rule_set=rule_set)


def _usual_layout(ndim: int) -> str:
    """The layout of a problem that names none."""
    ones = "x".join(["1"] * ndim)
    return str(Problem("conv_fwd", n=1, c=1, k=1, **{"in": ones}, filter=ones, dtype="fp16").layout)


# In the original's words; None: as the library has it by itself.
_FLAGS = ("double_smem_buffer", "split_image", "explicit_gemm", "two_stage")


@dataclasses.dataclass
class GroupedConvKernelConfig(_original.NamedConfig):
    """How to compute, in the original's fields: `wave_*` says how many waves share a tile, `warp_tile_*` is the warp tile.
    What is left out is taken from the first kernel of the arch's rule set that has what is given, so that the config is
    valid where there is one."""

    variant: str = "forward"
    ndim_spatial: int = 2
    dtype: str = "fp16"
    layout: str | None = None
    arch: str | None = None  # the GPU here, or the CPU where there is none
    tile_m: int | None = None
    tile_n: int | None = None
    tile_k: int | None = None
    wave_m: int | None = None
    wave_n: int | None = None
    wave_k: int | None = None
    warp_tile_m: int | None = None
    warp_tile_n: int | None = None
    warp_tile_k: int | None = None
    pipeline: str | None = None
    scheduler: str | None = None
    epilogue: str | None = None
    vector_size_a: int | None = None
    vector_size_b: int | None = None
    vector_size_c: int | None = None
    block_per_cu: int | None = None
    num_wave_groups: int | None = None  # one more than the waves that only load; 1, as left out: what the pipeline needs
    num_groups_to_merge: int | None = None
    pad_m: bool | None = None
    pad_n: bool | None = None
    pad_k: bool | None = None
    double_smem_buffer: bool | None = None
    split_image: bool | None = None
    explicit_gemm: bool | None = None
    two_stage: bool | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # further fields, by the library's names

    def __post_init__(self) -> None:
        self._unwrap()
        self.variant, dims = variant_of(self.variant)
        self.ndim_spatial = dims or self.ndim_spatial
        self.arch = self.arch or default_arch()
        self.dtype = self.dtype.value if isinstance(self.dtype, GroupedConvDataType) else self.dtype
        self.layout = self.layout or _usual_layout(self.ndim_spatial)
        self._complete()

    def _given(self) -> dict[str, Any]:
        """The given fields, in the library's words."""
        single = {"pipeline": self.pipeline, "scheduler": self.scheduler, "epilogue": self.epilogue,
                  "vector_a": self.vector_size_a, "vector_b": self.vector_size_b, "vector_c": self.vector_size_c,
                  "blocks_per_unit": self.block_per_cu,
                  "producer_waves": self.num_wave_groups - 1 if (self.num_wave_groups or 1) > 1 else None,
                  "num_groups_to_merge": self.num_groups_to_merge, **{name: getattr(self, name) for name in _FLAGS}}
        return {key: value for key, value in single.items() if value is not None}

    def _complete(self) -> None:
        """Fills in what was left out, from the listed kernel that agrees most with what was given: of several the plainest."""
        given = {**self._given(), **self.options}
        shapes = {name: [getattr(self, f"{name}_{letter}") for letter in "mnk"] for name in ("tile", "wave", "warp_tile")}

        def agreement(config: Mapping[str, Any]) -> int:
            same = [config.get(key) == value for key, value in given.items()].count(True)
            pairs = [pair for name, wanted in shapes.items() for pair in zip(numbers(config[name]), wanted)]
            return same + [have == want for have, want in pairs].count(True)

        def fits(kernel: Any) -> bool:
            # Kernels that add up columns take one group, so they serve only who asks for them.
            return bool(kernel.config["ndim"] == self.ndim_spatial and kernel.config["layout"] in (self.layout, "any")
                        and (kernel.config.get("gather") != "columns" or given.get("gather") == "columns"))

        fitting: list[Any] = []
        for rule_set in ("default", "full"):  # the whole set only for a pipeline that the default one leaves out
            listed = _listed(VARIANTS[self.variant], str(self.arch), self.dtype, rule_set)
            fitting = [kernel for kernel in listed if fits(kernel)] or fitting
            if any(kernel.config["pipeline"] == (self.pipeline or kernel.config["pipeline"]) for kernel in fitting):
                break
        if not fitting:
            raise ValueError(f"the arch {self.arch} has no {self.variant} kernels of {self.ndim_spatial} dimensions for "
                             f"{self.dtype} in {self.layout}")
        base = max(fitting, key=lambda kernel: (kernel.config["pipeline"] == self.pipeline, agreement(kernel.config),
                                                kernel.available,
                                                kernel.config.get("gather") != "halo", -len(kernel.config),
                                                -int(kernel.config.get("split_k", 1)))).config
        mine = LibraryConfig(base)
        for name in shapes:
            for letter, size in zip("mnk", numbers(base[name])):
                if getattr(self, f"{name}_{letter}") is None:
                    setattr(self, f"{name}_{letter}", size)
        pad = str(mine.pad)
        for letter in "mnk":
            if getattr(self, f"pad_{letter}") is None:
                setattr(self, f"pad_{letter}", letter in pad and pad != "none")
        if self.num_wave_groups == 1:
            self.num_wave_groups = None
        for ours, theirs in _NAMES.items():
            if getattr(self, ours) is None:
                setattr(self, ours, _value(mine, theirs))
        known = {"op", "dtype", "layout", "ndim", "arch", "pad", "tile", "wave", "warp_tile", *_NAMES.values()}
        known |= {field["field"] for field in LibraryConfig.fields() if field["mark"] == "launch"}  # a problem decides those,
        known.add("math")  # and how exact it is, who asks
        self.options = {**{key: value for key, value in base.items() if key not in known}, **self.options}

    @property
    def tile_str(self) -> str:
        return self._triple("tile")

    @property
    def wave_str(self) -> str:
        return self._triple("wave")

    @property
    def warp_str(self) -> str:
        return self._triple("warp_tile")

    @property
    def vec_str(self) -> str:
        return f"{self.vector_size_a}x{self.vector_size_b}x{self.vector_size_c}"

    def print_config(self, indent: str = "  ") -> None:
        """The fields, a few to a line."""
        print(f"{indent}{self.name}")
        print(f"{indent}  {self.variant} {self.ndim_spatial}d {self.dtype} {self.layout} on {self.arch}")
        print(f"{indent}  tile {self.tile_str}, waves {self.wave_str}, warp tile {self.warp_str}, vectors {self.vec_str}")
        print(f"{indent}  {self.pipeline}, {self.scheduler}, {self.epilogue}")

    def to_library(self) -> dict[str, Any]:
        shape = {name: self._triple(name) for name in ("tile", "wave", "warp_tile")}
        pads = "".join(letter for letter in "mnk" if getattr(self, f"pad_{letter}"))
        return {"op": VARIANTS[self.variant], "dtype": self.dtype, "layout": self.layout, "ndim": self.ndim_spatial,
                **shape, **self._given(), **({} if pads == "mnk" else {"pad": pads or "none"}), "arch": self.arch,
                **self.options}

    @classmethod
    def from_library(cls, config: LibraryConfig) -> GroupedConvKernelConfig:
        v = config.values
        ndim, pad = v["ndim"], str(config.pad)
        fields: dict[str, Any] = {f"{name}_{letter}": size for name in ("tile", "wave", "warp_tile")
                                  for letter, size in zip("mnk", numbers(v[name]))}
        fields.update({f"pad_{letter}": letter in pad and pad != "none" for letter in "mnk"})
        fields.update({ours: _value(config, theirs) for ours, theirs in _NAMES.items()})
        known = {"op", "dtype", "layout", "ndim", "arch", "pad", "tile", "wave", "warp_tile", *_NAMES.values()}
        return cls(variant=OPS[v["op"]], ndim_spatial=ndim, dtype=v["dtype"], arch=v["arch"],
                   layout=None if v["layout"] == "any" else v["layout"],
                   options={key: value for key, value in v.items() if key not in known}, **fields)

    def to_dict(self) -> dict[str, Any]:
        """The original's nested form: tile_config and trait_config, of lists of one value, and what stands beside them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        tile = {name: [values.pop(name)] for name in list(values) if re.match(r"(tile|wave|warp_tile)_[mnk]$", name)}
        traits = {name: [values.pop(name)] for name in list(values) if name.startswith("pad_") or name in _NAMES}
        return {"tile_config": tile, "trait_config": traits, **values}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupedConvKernelConfig:
        """Reads the form of to_dict, a flat one, or that of to_json_obj."""
        if "algorithm" not in data:
            made: GroupedConvKernelConfig = cls.of(data)
            return made
        how = dict(data["algorithm"])
        for ours, theirs in (("wave", "wave"), ("warp_tile", "warp")):
            if theirs in how:
                how.update({f"{ours}_{letter}": size for letter, size in zip("mnk", numbers(how.pop(theirs)))})
        how.update({f"vector_size_{letter}": size for letter, size in zip("abc", how.pop("vector_sizes", []))})
        return cls.from_dict({**data.get("signature", {}), **how, "arch": data.get("arch"),
                              "options": data.get("options", {})})

    def to_json_obj(self) -> dict[str, Any]:
        """The original's form: signature and algorithm; options are what it has no name for."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        signature = {name: values[name] for name in ("variant", "dtype", "ndim_spatial", "layout")}
        rest = {name: value for name, value in values.items() if name not in signature and name not in ("arch", "options")
                and not re.match(r"(wave|warp_tile)_[mnk]$|vector_size_[abc]$", name)}
        vectors = [self.vector_size_a, self.vector_size_b, self.vector_size_c]
        return {"name": self.name, "signature": signature, "arch": self.arch, "options": self.options,
                "algorithm": {**rest, "wave": self.wave_str, "warp": self.warp_str, "vector_sizes": vectors}}


# The original's name: the library's.
_NAMES = {"pipeline": "pipeline", "scheduler": "scheduler", "epilogue": "epilogue", "vector_size_a": "vector_a",
          "vector_size_b": "vector_b", "vector_size_c": "vector_c", "block_per_cu": "blocks_per_unit",
          "num_wave_groups": "producer_waves", "num_groups_to_merge": "num_groups_to_merge",
          **{name: name for name in _FLAGS}}


def _value(config: LibraryConfig, field: str) -> Any:
    """A field's value, also of one that is at its default."""
    value = getattr(config, field)
    if field in _FLAGS:
        return value in (True, "true", "1")
    number = int(value) if isinstance(value, str) and value.isdigit() else value
    return number + 1 if field == "producer_waves" else number


@dataclasses.dataclass
class GroupedConvValidationResult(ValidationResultBase):
    """The outcome of checking a grouped convolution's config."""

    variant: str = "forward"
    config: Any = None


AnyConvConfig = GroupedConvKernelConfig | Mapping[str, Any]
# Keys that the original's dict must have; for the first two, one of the fields that belong there will do.
_REQUIRED = {"tile_config": r"(tile|wave|warp_tile)_[mnk]$", "trait_config": "pipeline$|scheduler$|epilogue$", "variant": "",
             "ndim_spatial": "", "arch": "", "layout": ""}


def _missing(config: AnyConvConfig) -> list[str]:
    if not isinstance(config, Mapping) or "algorithm" in config:
        return []
    return [key for key, also in _REQUIRED.items()
            if key not in config and not (also and any(re.match(also, name) for name in config))]


def validate_grouped_conv_config(config: AnyConvConfig) -> GroupedConvValidationResult:
    """Every rule of the library that the config breaks, and what would mend it, in the original's words. A dict needs
    tile_config, trait_config, variant, ndim_spatial, arch and layout."""
    missing = _missing(config)
    if missing:
        return GroupedConvValidationResult(False, [f"missing required key: {key}" for key in missing], config=config)
    try:
        given = config_of(config)
    except (TilewiseError, ValueError) as error:  # a word that is none, or an arch without such kernels
        return GroupedConvValidationResult(False, [str(error)], config=config)
    result: GroupedConvValidationResult = _original.validation(given, GroupedConvValidationResult)
    result.variant, result.config = given.variant, config
    return result


def config_of(config: AnyConvConfig) -> GroupedConvKernelConfig:
    return config if isinstance(config, GroupedConvKernelConfig) else GroupedConvKernelConfig.from_dict(config)


def auto_correct_grouped_conv_config(config: AnyConvConfig) -> tuple[Any, GroupedConvValidationResult]:
    """(the nearest valid config, in the form that was given; its check, whose warnings list every change)"""
    missing = _missing(config)
    if missing:
        return config, validate_grouped_conv_config(config)
    made = _original.mended(config_of(config))
    checked = GroupedConvValidationResult(not made.remaining, made.remaining, made.changes, {}, made.config.variant,
                                          made.config)
    return (made.config if isinstance(config, GroupedConvKernelConfig) else made.config.to_dict()), checked


def get_grouped_conv_default_config(variant: str = "forward", ndim_spatial: int = 2, arch: str | None = None,
                                    dtype: str = "fp16") -> GroupedConvKernelConfig:
    """The first config of the arch's default rule set: a valid one."""
    return GroupedConvKernelConfig(variant=variant, ndim_spatial=ndim_spatial, arch=arch, dtype=dtype)
