# SPDX-License-Identifier: MIT
"""The original's grouped-convolution problem, of grouped_conv_utils: its fields in the library's words, worked out by the
library, and as the struct of the original's C functions.
"""
from __future__ import annotations

import ctypes
import dataclasses
import json
import operator
import re
from typing import Any

from ._library import UnsupportedError
from .problem import Problem

VARIANTS = {"forward": "conv_fwd", "bwd_data": "conv_bwd_data", "bwd_weight": "conv_bwd_weight"}
OPS = {op: variant for variant, op in VARIANTS.items()}
_ALIASES = {"fwd": "forward", "bwdd": "bwd_data", "bwd_d": "bwd_data", "backward_data": "bwd_data", "bwdw": "bwd_weight",
            "bwd_w": "bwd_weight", "backward_weight": "bwd_weight", **OPS}


def variant_of(text: str) -> tuple[str, int | None]:
    """forward, bwd_data or bwd_weight of any of its names, and the dimensions where they are in it: 2d_fwd."""
    dims = re.match(r"([123])d_(.+)", text)
    word = dims[2] if dims else text
    found = _ALIASES.get(word, word)
    if found not in VARIANTS:
        raise ValueError(f"variant: {text!r}; need one of {', '.join([*VARIANTS, *_ALIASES])}")
    return found, int(dims[1]) if dims else None


@dataclasses.dataclass
class GroupedConvProblem:
    """The convolution to compute. C and K are totals over the G groups; a depth (Di, Z, pad_d) makes it three-dimensional."""

    N: int = 1
    C: int = 64
    K: int = 128
    G: int = 1
    Hi: int = 28
    Wi: int = 28
    Di: int = 1
    Y: int = 3
    X: int = 3
    Z: int = 1
    stride_h: int = 1
    stride_w: int = 1
    stride_d: int = 1
    pad_h: int = 0
    pad_w: int = 0
    pad_d: int = 0
    dilation_h: int = 1
    dilation_w: int = 1
    dilation_d: int = 1
    direction: str = "forward"
    split_k: int = 1

    def __post_init__(self) -> None:
        self.direction, _ = variant_of(self.direction)
        try:
            self.problem("fp16")
        except UnsupportedError as error:  # what cannot be, such as C that G does not divide
            raise ValueError(str(error)) from error

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

    @property
    def gflops(self) -> float:
        return self.flops / 1e9

    def print_problem(self, indent: str = "  ") -> None:
        """The problem's text, and the shapes of its tensors."""
        print(f"{indent}{self.problem('fp16').text}")
        print(f"{indent}  input {self.input_shape()}, weight {self.weight_shape()}, output {self.output_shape()}, "
              f"{self.gflops:.3f} GFLOP")

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


class GroupedConvProblemC(ctypes.Structure):
    """The ConvProblemC of include/tilewise/original.h."""

    _fields_ = [(name, ctypes.c_int) for name in (
        "N G C K input_d input_h input_w filter_z filter_y filter_x stride_d stride_h stride_w pad_d pad_h pad_w "
        "dilation_d dilation_h dilation_w direction split_k").split()]

    @classmethod
    def from_problem(cls, p: GroupedConvProblem) -> GroupedConvProblemC:
        same = {name: getattr(p, name) for name, _ in cls._fields_ if hasattr(p, name) and name != "direction"}
        return cls(**same, input_d=p.Di, input_h=p.Hi, input_w=p.Wi, filter_z=p.Z, filter_y=p.Y, filter_x=p.X,
                   direction=list(VARIANTS).index(p.direction))
