# SPDX-License-Identifier: MIT
"""A problem read from its text: sizes, whether it can exist, and where every element of every operand lies. Written from
docs/problems.md."""
import dataclasses
import math

from formats import BYTES

CONV_OPS = ("conv_fwd", "conv_bwd_data", "conv_bwd_weight")
USUAL_OUTPUT = {"fp8": "fp16", "bf8": "fp16", "int8": "int32"}
OPERATIONS = ("bias", "relu", "relu6", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "hardswish")


@dataclasses.dataclass
class Operand:
    """Where the elements of an operand lie, in elements from its first."""
    name: str
    dtype: str
    shape: tuple
    strides: tuple

    @property
    def extent(self):
        """Elements from the first to the last, both included."""
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))

    @property
    def bytes(self):
        return self.extent * BYTES[self.dtype]


def _packed(name, dtype, shape):
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    return Operand(name, dtype, tuple(shape), tuple(strides))


def _extents(text, rank):
    values = tuple(int(part) for part in text.split("x"))
    return values * rank if len(values) == 1 else values


class Problem:
    """The fields of a text, with defaults filled in."""

    def __init__(self, text):
        self.text = text
        self.op, fields = text.split(":", 1)
        self.fields = dict(field.split("=", 1) for field in fields.split(","))
        get = self.fields.get
        self.dtype = get("dtype")
        self.dtype_b = get("b", self.dtype)
        self.out = get("out", USUAL_OUTPUT.get(self.dtype, self.dtype))
        words = [get(key) for key in ("epilogue", "d") if key in self.fields]
        self.epilogue = "+".join(words).split("+") if words else []
        self.d_count = sum(word in ("add", "mul") for word in self.epilogue)
        self.beta = get("beta") == "1"
        self.packed_b = get("packed_b") == "1"
        self.scale = get("scale", "none")
        self.math = get("math", "strict")
        self.align = int(get("align", 16))
        self.deterministic = get("deterministic") == "1"
        self.is_conv = self.op in CONV_OPS
        if self.is_conv:
            self._read_conv()
        else:
            self._read_gemm()

    def number(self, key, default=None):
        return int(self.fields.get(key, default))

    def _read_gemm(self):
        self.m, self.n, self.k = (self.number(key) for key in "mnk")
        self.batch = self.number("batch", 1)
        self.layout = self.fields.get("layout", "rcr")
        sizes = ((self.m, self.k), (self.k, self.n), (self.m, self.n))
        # As stored: rows, their length, the distance of rows, the distance of matrices.
        self.stored = []
        for which, (high, wide), row in zip("abc", sizes, self.layout):
            rows, length = (high, wide) if row == "r" else (wide, high)
            leading = self.number("ld" + which, length)
            self.stored.append((rows, length, leading, self.number("batch_stride_" + which, rows * leading)))
        self.depth = self.k

    def _read_conv(self):
        self.images, self.c, self.k = (self.number(key) for key in "nck")
        self.groups = self.number("g", 1)
        self.size = tuple(int(part) for part in self.fields["in"].split("x"))
        rank = len(self.size)
        self.filter = _extents(self.fields["filter"], rank)
        self.stride = _extents(self.fields.get("stride", "1"), rank)
        self.dilation = _extents(self.fields.get("dilation", "1"), rank)
        pads = self.fields.get("pad", "0").split("x")
        pads = [tuple(int(part) for part in pad.split(":")) for pad in pads]
        self.pads = [(pad[0], pad[-1]) for pad in (pads * rank if len(pads) == 1 else pads)]
        self.layout = self.fields.get("layout", ("nwgc", "nhwgc", "ndhwgc")[rank - 1])
        self.channels_last = self.layout.endswith("gc")
        self.output = tuple((size + sum(pad) - dilation * (taps - 1) - 1) // max(stride, 1) + 1
                            for size, pad, dilation, taps, stride
                            in zip(self.size, self.pads, self.dilation, self.filter, self.stride))

    def impossible(self):
        """Why the problem cannot exist; None where it can. Only what the generator gets wrong on purpose."""
        if not self.is_conv:
            if min(self.m, self.n, self.k, self.batch) < 0:
                return "size_positive"
            for which, (rows, length, leading, between) in zip("abc", self.stored):
                if leading < length:
                    return "leading_stride"
                if which == "c" and self.batch > 1 and between < (rows - 1) * leading + length:
                    return "batch_stride"
            return None
        if self.images < 0 or min(self.groups, self.c, self.k) < 1:
            return "size_positive"
        if self.dtype == "int8" and self.op != "conv_fwd":
            return "int8_forward_only"
        if self.c % self.groups or self.k % self.groups:
            return "groups_divide"
        for size, pad, dilation, taps, stride in zip(self.size, self.pads, self.dilation, self.filter, self.stride):
            if min(size, taps, stride, dilation) < 1:
                return "size_positive"
            if dilation * (taps - 1) + 1 > size + sum(pad):
                return "filter_fits"
        return None

    def operands(self):
        """Every operand by name: a, b, c, then bias, d0 and its kin, and the scales."""
        if self.is_conv:
            found = self._conv_operands()
        else:
            found = [self._matrix(*each) for each in zip("abc", (self.dtype, self.dtype_b, self.out), self.stored)]
        c = found[2]
        if "bias" in self.epilogue:
            found.append(_packed("bias", self.out, (self.bias_length(),)))
        found += [dataclasses.replace(c, name=f"d{i}") for i in range(self.d_count)]
        if self.scale != "none":
            rows = self.scale == "row"
            found.append(_packed("scale_a", "fp32", (self.m if rows else 1,)))
            found.append(_packed("scale_b", "fp32", (self.n if rows else 1,)))
        return {operand.name: operand for operand in found}

    def bias_length(self):
        return self.n if not self.is_conv else self.k if self.op == "conv_fwd" else self.c

    def _matrix(self, name, dtype, stored):
        rows, length, leading, between = stored
        return Operand(name, dtype, (self.batch, rows, length), (between, leading, 1))

    def _conv_operands(self):
        groups, c, k = self.groups, self.c // self.groups, self.k // self.groups
        w = (groups, k, *self.filter, c)

        def activation(pixels, channels):
            middle = (*pixels, groups, channels) if self.channels_last else (groups, channels, *pixels)
            return (self.images, *middle)

        x, y = activation(self.size, c), activation(self.output, k)
        shapes = {"conv_fwd": (x, w, y), "conv_bwd_data": (y, w, x), "conv_bwd_weight": (y, x, w)}[self.op]
        return [_packed(*each) for each in zip("abc", (self.dtype, self.dtype_b, self.out), shapes)]
