# SPDX-License-Identifier: MIT
"""The original's grouped-convolution config and problem, of grouped_conv_utils: their fields in the library's words and
back, checked, corrected and worked out by the library.
"""
from __future__ import annotations

import dataclasses
import enum
import json
import operator
import re
from collections.abc import Mapping
from typing import Any

from . import _original
from .api import kernels
from .config import KernelConfig as LibraryConfig
from .dispatcher_common import ValidationResultBase, default_arch, numbers
from .problem import Problem

VARIANTS = {"forward": "conv_fwd", "bwd_data": "conv_bwd_data", "bwd_weight": "conv_bwd_weight"}
_OPS = {op: variant for variant, op in VARIANTS.items()}
_ALIASES = {"fwd": "forward", "bwdd": "bwd_data", "bwd_d": "bwd_data", "backward_data": "bwd_data", "bwdw": "bwd_weight",
            "bwd_w": "bwd_weight", "backward_weight": "bwd_weight", **_OPS}


class GroupedConvDataType(str, enum.Enum):
    """The types of a convolution's input."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    INT8 = "int8"


def variant_of(text: str) -> tuple[str, int | None]:
    """forward, bwd_data or bwd_weight of any of its names, and the dimensions where they are in it: 2d_fwd."""
    dims = re.match(r"([123])d_(.+)", text)
    word = dims[2] if dims else text
    found = _ALIASES.get(word, word)
    if found not in VARIANTS:
        raise ValueError(f"variant: {text!r}; need one of {', '.join([*VARIANTS, *_ALIASES])}")
    return found, int(dims[1]) if dims else None


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
    num_wave_groups: int | None = None  # waves that only load, in the library's words
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
        self.variant, dims = variant_of(self.variant)
        self.ndim_spatial = dims or self.ndim_spatial
        self.arch = self.arch or default_arch()
        self.dtype = self.dtype.value if isinstance(self.dtype, GroupedConvDataType) else self.dtype
        self.layout = self.layout or _usual_layout(self.ndim_spatial)
        self._complete()

    def _given(self) -> dict[str, Any]:
        """What is given, in the library's words."""
        single = {"pipeline": self.pipeline, "scheduler": self.scheduler, "epilogue": self.epilogue,
                  "vector_a": self.vector_size_a, "vector_b": self.vector_size_b, "vector_c": self.vector_size_c,
                  "blocks_per_unit": self.block_per_cu, "producer_waves": self.num_wave_groups,
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

        listed = kernels(op=VARIANTS[self.variant], arch=self.arch, dtype=self.dtype)
        # Kernels that add up columns take one group, so they serve only who asks for them.
        fitting = [kernel for kernel in listed if kernel.config["ndim"] == self.ndim_spatial
                   and kernel.config["layout"] in (self.layout, "any")
                   and (kernel.config.get("gather") != "columns" or given.get("gather") == "columns")]
        if not fitting:
            raise ValueError(f"the arch {self.arch} has no {self.variant} kernels of {self.ndim_spatial} dimensions for "
                             f"{self.dtype} in {self.layout}")
        base = max(fitting, key=lambda kernel: (agreement(kernel.config), kernel.available,
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
        for ours, theirs in _NAMES.items():
            if getattr(self, ours) is None:
                setattr(self, ours, _value(mine, theirs))
        known = {"op", "dtype", "layout", "ndim", "arch", "pad", "tile", "wave", "warp_tile", *_NAMES.values()}
        self.options = {**{key: value for key, value in base.items() if key not in known}, **self.options}

    def to_library(self) -> dict[str, Any]:
        shape = {name: "x".join(str(getattr(self, f"{name}_{letter}")) for letter in "mnk")
                 for name in ("tile", "wave", "warp_tile")}
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
        return cls(variant=_OPS[v["op"]], ndim_spatial=ndim, dtype=v["dtype"], arch=v["arch"],
                   layout=None if v["layout"] == "any" else v["layout"],
                   options={key: value for key, value in v.items() if key not in known}, **fields)

    def to_dict(self) -> dict[str, Any]:
        """The original's nested form: tile_config, trait_config and what stands beside them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        tile = {name: values.pop(name) for name in list(values) if re.match(r"(tile|wave|warp_tile)_[mnk]$", name)}
        traits = {name: values.pop(name) for name in ("pipeline", "scheduler", "epilogue", "pad_m", "pad_n", "pad_k",
                                                      *_FLAGS, "num_groups_to_merge")}
        return {**values, "tile_config": tile, "trait_config": traits}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupedConvKernelConfig:
        flat = {**data, **data.get("tile_config", {}), **data.get("trait_config", {})}
        flat.pop("tile_config", None)
        flat.pop("trait_config", None)
        unknown = set(flat) - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise ValueError(f"unknown fields {', '.join(sorted(unknown))} in a grouped convolution's config")
        return cls(**flat)

    def to_json_obj(self) -> dict[str, Any]:
        return {"name": self.name, **self.to_dict()}


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
    return int(value) if isinstance(value, str) and value.isdigit() else value


@dataclasses.dataclass
class GroupedConvValidationResult(ValidationResultBase):
    """The outcome of checking a grouped convolution's config."""

    config: Any = None


AnyConvConfig = GroupedConvKernelConfig | Mapping[str, Any]


def _config(config: AnyConvConfig) -> GroupedConvKernelConfig:
    return config if isinstance(config, GroupedConvKernelConfig) else GroupedConvKernelConfig.from_dict(config)


def validate_grouped_conv_config(config: AnyConvConfig) -> GroupedConvValidationResult:
    """Every rule of the library that the config breaks, and what would mend it."""
    result: GroupedConvValidationResult = _original.validation(_config(config).to_library(), GroupedConvValidationResult)
    result.config = config
    return result


def auto_correct_grouped_conv_config(config: AnyConvConfig) -> tuple[Any, GroupedConvValidationResult]:
    """(the nearest valid config, in the form that was given; its check, whose warnings list every change)"""
    mended, changes, remaining = _original.corrected(_config(config).to_library())
    result = GroupedConvKernelConfig.from_library(LibraryConfig(mended))
    checked = GroupedConvValidationResult(not remaining, remaining, changes, {}, result)
    return (result if isinstance(config, GroupedConvKernelConfig) else result.to_dict()), checked


def get_grouped_conv_default_config(variant: str = "forward", ndim_spatial: int = 2, arch: str | None = None,
                                    dtype: str = "fp16") -> GroupedConvKernelConfig:
    """The first config of the arch's default rule set: a valid one."""
    return GroupedConvKernelConfig(variant=variant, ndim_spatial=ndim_spatial, arch=arch, dtype=dtype)


@dataclasses.dataclass
class GroupedConvProblem:
    """What to compute. C and K are totals over the G groups; a depth (Di, Z, pad_d) makes it three-dimensional."""

    N: int
    C: int
    K: int
    G: int = 1
    Di: int = 1
    Hi: int = 1
    Wi: int = 1
    Z: int = 1
    Y: int = 1
    X: int = 1
    stride_d: int = 1
    stride_h: int = 1
    stride_w: int = 1
    pad_d: int = 0
    pad_h: int = 0
    pad_w: int = 0
    dilation_d: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    direction: str = "forward"
    split_k: int = 1

    def __post_init__(self) -> None:
        self.direction, _ = variant_of(self.direction)
        self.problem("fp16")  # the library refuses what cannot be, such as C that G does not divide

    @property
    def is_3d(self) -> bool:
        return self.Di > 1 or self.Z > 1 or self.pad_d > 0

    @property
    def ndim_spatial(self) -> int:
        return 3 if self.is_3d else 2

    def problem(self, dtype: str, layout: str | None = None) -> Problem:
        """The library's problem, for inputs of a type."""
        start = 0 if self.is_3d else 1

        def sizes(names: str) -> str:
            return "x".join(str(operator.index(getattr(self, name))) for name in names.split()[start:])

        fields: dict[str, Any] = {"layout": layout} if layout else {}
        return Problem(VARIANTS[self.direction], n=self.N, g=self.G, c=self.C, k=self.K, **{"in": sizes("Di Hi Wi")},
                       filter=sizes("Z Y X"), stride=sizes("stride_d stride_h stride_w"), pad=sizes("pad_d pad_h pad_w"),
                       dilation=sizes("dilation_d dilation_h dilation_w"), dtype=dtype, **fields)

    def _output(self, place: int) -> int:
        sizes = self.problem("fp16").output or []
        return ([1] * (3 - len(sizes)) + list(sizes))[place]

    @property
    def Do(self) -> int:
        return self._output(0)

    @property
    def Ho(self) -> int:
        return self._output(1)

    @property
    def Wo(self) -> int:
        return self._output(2)

    @property
    def flops(self) -> float:
        return self.problem("fp16").flops

    def _shape(self, operand: str) -> tuple[int, ...]:
        forward = dataclasses.replace(self, direction="forward").problem("fp16")
        return forward.operands[operand].shape

    def input_shape(self) -> tuple[int, ...]:
        """Of X and dX: NHWGC, or NDHWGC."""
        return self._shape("a")

    def weight_shape(self) -> tuple[int, ...]:
        """Of W and dW: GKYXC, or GKZYXC."""
        return self._shape("b")

    def output_shape(self) -> tuple[int, ...]:
        """Of Y and dY: NHWGK, or NDHWGK."""
        return self._shape("c")

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))
