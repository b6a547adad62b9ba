# SPDX-License-Identifier: MIT
"""From arrays to the text of a GEMM problem. Runs once for each kind of operands, so it may take its time and checks
everything that the library cannot see: shapes against each other, strides, devices.
"""
from __future__ import annotations

from typing import Any

from . import _arrays
from ._arrays import Operand, operand
from ._operands import check_operand, list_of_d
from ._runtime import Executable

DEFAULT_ALIGN = 16  # bytes, of the problem text; more is never asked of a pointer


class Matrix:
    """A stored matrix, or a batch of them: rows, columns, and the strides that are not the packed ones."""

    def __init__(self, x: Operand):
        if len(x.shape) not in (2, 3):
            raise ValueError(f"{x.name}: {len(x.shape)} dimensions {x.shape}; need 2, or 3 with a batch")
        self.batch = x.shape[0] if len(x.shape) == 3 else None
        self.rows, self.columns = x.shape[-2:]
        leading, step = x.strides[-2:]
        if self.columns > 1 and step != 1:
            hint = (f"it is a transposed view: give {x.name}.T and the other letter of layout"
                    if len(x.shape) == 2 and leading == 1 else "make it contiguous")
            raise ValueError(f"{x.name}: its last dimension has stride {step}, need 1; {hint} "
                             f"(numpy.ascontiguousarray, .contiguous() in torch)")
        self.leading = leading if self.rows > 1 else self.columns  # of one row it means nothing
        if self.leading < self.columns:
            raise ValueError(f"{x.name}: its rows of {self.columns} are {leading} apart, so they overlap or run "
                             "backwards; make it contiguous (numpy.ascontiguousarray, .contiguous() in torch)")
        self.batch_stride = x.strides[0] if self.batch is not None and self.batch > 1 else 0
        if self.batch_stride < 0:
            raise ValueError(f"{x.name}: its batch runs backwards; make it contiguous")

    def fields(self, letter: str, batch: int) -> str:
        text = "" if self.leading == self.columns else f",ld{letter}={self.leading}"
        if batch > 1 and self.batch_stride != self.rows * self.leading:
            text += f",batch_stride_{letter}={self.batch_stride}"
        return text


def _stored(letter: str, rows: int, columns: int) -> tuple[int, int]:
    return (rows, columns) if letter == "r" else (columns, rows)


class Call:
    """The operands of one call, checked against each other as far as the library cannot see them."""

    def __init__(self, a: Any, b: Any, out: Any, out_dtype: Any, bias: Any, d: Any, d_op: Any, scale_a: Any,
                 scale_b: Any):
        self.a, self.b = operand(a, "a"), operand(b, "b")
        self.out = None if out is None else operand(out, "out")
        self.out_dtype = None if out_dtype is None else _arrays.dtype_name(out_dtype)
        self.bias = None if bias is None else operand(bias, "bias")
        self.d = [operand(x, f"d[{i}]") for i, x in enumerate(list_of_d(d))]
        self.d_ops = d_op.split("+") if isinstance(d_op, str) else list(d_op)
        if len(self.d_ops) == 1:
            self.d_ops *= len(self.d)
        if self.d and len(self.d_ops) != len(self.d):
            raise ValueError(f"d_op: {len(self.d_ops)} operations for {len(self.d)} arrays; need one, or one for each")
        if (scale_a is None) != (scale_b is None):
            raise ValueError("scale_a, scale_b: an array for both, or for neither; where one has none give ones")
        self.scales = [] if scale_a is None else [operand(scale_a, "scale_a"), operand(scale_b, "scale_b")]
        self.device = self.a.device
        if self.out is not None and not self.out.writable:
            raise ValueError("out: it is read-only")
        for x in (self.b, self.out, self.bias, *self.d, *self.scales):
            if x is not None and x.device != self.device:
                raise ValueError(f"{x.name}: it is on {x.device}, but a is on {self.device}; move one of them")

    def problem_text(self, layout: str, activation: str | None, beta: bool, math: str, align: int) -> str:
        if not isinstance(layout, str) or len(layout) != 3 or set(layout) - {"r", "c"}:
            raise ValueError(f"layout: {layout!r}; need three letters of r and c, for A, B and C")
        a, b = Matrix(self.a), Matrix(self.b)
        m, k = _stored(layout[0], a.rows, a.columns)
        b_k, n = _stored(layout[1], b.rows, b.columns)
        if k != b_k:
            raise ValueError(f"a {self.a.shape} and b {self.b.shape} do not match in layout {layout}: "
                             f"a has k={k}, b has k={b_k}{_layout_hint(layout, k, b)}")
        batch = self._batch(a, b)
        self.out_shape = (() if a.batch is None and b.batch is None else (batch,)) + _stored(layout[2], m, n)
        text = f"gemm:m={m},n={n},k={k},dtype={self.a.dtype},layout={layout}"
        text += f",batch={batch}" if batch > 1 else ""
        text += f",b={self.b.dtype}" if self.b.dtype != self.a.dtype else ""
        dtype = self._output_dtype()
        text += f",out={dtype}" if dtype else ""
        text += a.fields("a", batch) + b.fields("b", batch)
        if self.out is not None:
            if self.out.shape != self.out_shape:
                raise ValueError(f"out: shape {self.out.shape}, need {self.out_shape}")
            text += Matrix(self.out).fields("c", batch)
        elif beta:
            raise ValueError("beta: it multiplies what is in out, so out must be given")
        return text + self._more_fields(m, n, activation, beta, math, align)

    def _batch(self, a: Matrix, b: Matrix) -> int:
        sizes = {x.batch for x in (a, b) if x.batch is not None and x.batch != 1}
        if len(sizes) > 1:
            raise ValueError(f"a has a batch of {a.batch}, b of {b.batch}; need the same, or 1")
        return sizes.pop() if sizes else 1

    def _output_dtype(self) -> str | None:
        given = None if self.out is None else self.out.dtype
        if given and self.out_dtype and given != self.out_dtype:
            raise TypeError(f"out_dtype: {self.out_dtype}, but out is of {given}")
        return given or self.out_dtype

    def _more_fields(self, m: int, n: int, activation: str | None, beta: bool, math: str, align: int) -> str:
        epilogue = [word for word in ("bias" if self.bias else None, activation) if word]
        text = f",epilogue={'+'.join(epilogue)}" if epilogue else ""
        if self.bias is not None:
            _check_vector(self.bias, n, "n")
        for x in self.d:
            if x.shape != self.out_shape:
                raise ValueError(f"{x.name}: shape {x.shape}, need the output's {self.out_shape}")
        text += f",d={'+'.join(self.d_ops)}" if self.d else ""
        text += ",beta=1" if beta else ""
        if self.scales:
            single = all(_count(x) == 1 for x in self.scales)
            for x, length, letter in zip(self.scales, (m, n), "mn"):
                _check_vector(x, 1 if single else length, "1 value, or " + letter)
                if x.dtype != "fp32":
                    raise TypeError(f"{x.name}: {x.dtype}; need float32")
            text += ",scale=tensor" if single else ",scale=row"
        text += f",math={math}" if math != "strict" else ""
        return text + (f",align={align}" if align != DEFAULT_ALIGN else "")

    def check_against(self, executable: Executable) -> None:
        """What is left: types and strides that must be those of the output."""
        given = {"a": self.a, "b": self.b, "c": self.out, "bias": self.bias}
        given.update((f"d{i}", x) for i, x in enumerate(self.d))
        for name, x in given.items():
            if x is not None:
                check_operand(x, executable.operands[name])


def _layout_hint(layout: str, k: int, b: Matrix) -> str:
    if k not in (b.rows, b.columns):
        return ""
    other = layout[0] + ("c" if layout[1] == "r" else "r") + layout[2]
    return f"; b as it is stored fits layout {other!r}"


def _count(x: Operand) -> int:
    return x.shape[0] if len(x.shape) == 1 else 1 if x.shape == () else -1


def _check_vector(x: Operand, length: int, meaning: str) -> None:
    if _count(x) != length:
        raise ValueError(f"{x.name}: shape {x.shape}, need ({length},) ({meaning})")
    if length > 1 and x.strides != (1,):
        raise ValueError(f"{x.name}: its values are {x.strides[0]} apart, need 1; make it contiguous")
