# SPDX-License-Identifier: MIT
"""The findings of crawl.py in a model: the fields of a problem, of those of its gradients, or why there are none."""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from .problem import Problem

Fields = dict[str, Any]  # of a problem, as in its JSON form (docs/problems.md)

LAYOUTS = {False: ("ngcw", "ngchw", "ngcdhw"), True: ("nwgc", "nhwgc", "ndhwgc")}  # whether channels are last


class Unmappable(Exception):
    """Why an operation of a model is no problem."""


@dataclasses.dataclass(frozen=True)
class Found:
    """An operation of the model; either its problem's fields or why it has none."""

    node: str
    operation: str
    fields: Fields | None
    reason: str = ""


def text_of(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def convolution(dtype: str, x: Sequence[int], w: Sequence[int], *, stride: Sequence[int], pads: Sequence[tuple[int, int]],
                dilation: Sequence[int], groups: int, bias: bool, channels_last: bool = False) -> Fields:
    """The convolution of sizes N, C, ... of x and K, C/groups, ... of w."""
    if not 1 <= len(x) - 2 <= 3 or len(w) != len(x):
        raise Unmappable(f"x of {len(x)} dimensions and weights of {len(w)}; need 1 to 3 beside images and channels")
    return {"op": "conv_fwd", "n": x[0], "g": groups, "c": x[1], "k": w[0], "in": text_of(x[2:]), "filter": text_of(w[2:]),
            "stride": text_of(stride), "pad": "x".join(f"{before}:{after}" for before, after in pads),
            "dilation": text_of(dilation), "dtype": dtype, "layout": LAYOUTS[channels_last][len(x) - 3],
            **({"epilogue": "bias"} if bias else {})}


def transposed(dtype: str, x: Sequence[int], w: Sequence[int], y: Sequence[int], **options: Any) -> Fields:
    """The gradient of the data of the convolution from y to x; w has sizes C of x, C of y / groups, ..."""
    fields = convolution(dtype, y, (x[1], *w[1:]), **options)
    if list(Problem(fields).output or ()) != list(x[2:]):
        raise Unmappable(f"from {text_of(x[2:])} to {text_of(y[2:])}: no convolution leads back")
    return fields | {"op": "conv_bwd_data"}


def product(dtype: str, a: Sequence[int], b: Sequence[int], *, layout: str = "rrr", bias: bool = False) -> Fields:
    """The product of sizes [..., m, k] and [..., k, n], as NumPy multiplies them. The layout says how the last two lie."""
    a = (1, *a) if len(a) == 1 else tuple(a)
    b = (*b, 1) if len(b) == 1 else tuple(b)
    m, k, n = a[-2], a[-1], b[-1]
    if b[-2] != k:
        raise Unmappable(f"sizes {text_of(a)} and {text_of(b)} do not fit")
    batch_a, batch_b = math.prod(a[:-2]), math.prod(b[:-2])
    fields = {"op": "gemm", "m": m, "n": n, "k": k, "dtype": dtype, "layout": layout, **({"epilogue": "bias"} if bias else {})}
    if batch_b == 1 and (batch_a == 1 or layout[0] == "r"):  # one product with all the rows
        return fields | {"m": batch_a * m}
    if batch_a == 1 or batch_b == 1:
        return fields | {"batch": max(batch_a, batch_b), "batch_stride_a" if batch_a == 1 else "batch_stride_b": 0}
    if a[:-2] != b[:-2]:
        raise Unmappable(f"sizes {text_of(a)} and {text_of(b)}: a batch that only one of them repeats in part")
    return fields | {"batch": batch_a}


def gradients(fields: Fields) -> list[Fields]:
    """The problems of both gradients, without an epilogue."""
    plain = {name: value for name, value in fields.items() if name not in ("epilogue", "d")}
    if fields["op"] != "gemm":
        return [plain | {"op": op} for op in ("conv_fwd", "conv_bwd_data", "conv_bwd_weight") if op != fields["op"]]
    if any(name.startswith(("ld", "batch_stride")) for name in fields):
        raise Unmappable("gradients: its operands have gaps or are repeated")
    m, n, k = (fields[name] for name in "mnk")
    a, b = fields["layout"][:2]
    other = {"r": "c", "c": "r"}
    # Each is written so that the result, which lies as its operand does, is stored by rows.
    of_a = {"m": m, "n": k, "k": n, "layout": "r" + other[b] + "r"} if a == "r" else \
        {"m": k, "n": m, "k": n, "layout": b + "cr"}
    of_b = {"m": k, "n": n, "k": m, "layout": other[a] + "rr"} if b == "r" else \
        {"m": n, "n": k, "k": m, "layout": "c" + a + "r"}
    return [plain | of_a, plain | of_b]
