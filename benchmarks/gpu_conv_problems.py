# SPDX-License-Identifier: MIT
"""The layers that benchmarks/gpu_conv.py compares: reading them from a file, what they need, and the least time.

A file has the forward problem of a layer a line and its family behind a #; every layer is computed in three directions. The
text is the library's, channels last; it may leave out a dilation of 1. Needs the standard library alone.
"""
import dataclasses
import math

from gpu_problems import NO_FAMILY, read_lines

DIRECTIONS = ("conv_fwd", "conv_bwd_data", "conv_bwd_weight")
ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}  # the types that cuDNN has in all directions
NEEDED = ("n", "g", "c", "k", "in", "filter", "stride", "pad", "dtype", "layout")
LAYOUTS = ("nwgc", "nhwgc", "ndhwgc")


@dataclasses.dataclass(frozen=True)
class ConvCase:
    """A direction of a layer and the family it is counted in."""

    text: str
    family: str
    op: str
    dtype: str
    images: int
    groups: int
    channels: int  # per group, of x
    filters: int  # per group, of y
    size: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    math: str = "strict"

    @property
    def output(self) -> tuple[int, ...]:
        return tuple((i + 2 * p - d * (f - 1) - 1) // s + 1
                     for i, f, s, p, d in zip(self.size, self.filter, self.stride, self.pad, self.dilation))

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (self.images, *self.size, self.groups, self.channels)

    @property
    def w_shape(self) -> tuple[int, ...]:
        return (self.groups, self.filters, *self.filter, self.channels)

    @property
    def y_shape(self) -> tuple[int, ...]:
        return (self.images, *self.output, self.groups, self.filters)

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The shapes of both inputs and the output, as the Python functions take them."""
        x, w, y = self.x_shape, self.w_shape, self.y_shape
        return {"conv_fwd": (x, w, y), "conv_bwd_data": (y, w, x), "conv_bwd_weight": (x, y, w)}[self.op]

    @property
    def k(self) -> int:
        """Products that are added up for one element of the output."""
        return {"conv_fwd": self.channels * math.prod(self.filter), "conv_bwd_data": self.filters * math.prod(self.filter),
                "conv_bwd_weight": self.images * math.prod(self.output)}[self.op]

    @property
    def flops(self) -> int:
        return 2 * math.prod(self.y_shape) * math.prod(self.filter) * self.channels

    @property
    def bytes(self) -> int:
        return ELEMENT_BYTES[self.dtype] * sum(map(math.prod, self.shapes))


def extents(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def parse_case(text: str, family: str = NO_FAMILY) -> ConvCase:
    op, _, rest = text.partition(":")
    if op not in DIRECTIONS:
        raise ValueError(f"{text!r}: only convolutions are compared here")
    fields = dict(part.partition("=")[::2] for part in rest.split(","))
    for name in NEEDED:
        if name not in fields:
            raise ValueError(f"{text!r}: {name}= is missing; need {', '.join(NEEDED)}")
    for name in fields:
        if name not in (*NEEDED, "dilation"):
            raise ValueError(f"{text!r}: {name}= has no counterpart in torch.conv2d; leave it out")
    if fields["dtype"] not in ELEMENT_BYTES or fields["layout"] not in LAYOUTS:
        raise ValueError(f"{text!r}: need dtype {', '.join(ELEMENT_BYTES)} and layout {', '.join(LAYOUTS)}")
    try:
        groups, size = int(fields["g"]), extents(fields["in"])
        return ConvCase(text, family, op, fields["dtype"], int(fields["n"]), groups, int(fields["c"]) // groups,
                        int(fields["k"]) // groups, size, extents(fields["filter"]), extents(fields["stride"]),
                        extents(fields["pad"]), extents(fields.get("dilation", "x".join(["1"] * len(size)))))
    except ValueError:
        raise ValueError(f"{text!r}: sizes are whole numbers, those of dimensions separated by x") from None


def parse_cases(lines: str) -> list[ConvCase]:
    """Every layer in every direction."""
    return read_lines(lines, lambda text, family: [parse_case(op + text[text.index(":"):], family) for op in DIRECTIONS])
