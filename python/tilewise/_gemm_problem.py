# SPDX-License-Identifier: MIT
"""From arrays to the fields of a GEMM problem. Runs once for each kind of operands, so it may take its time and checks
everything that the library cannot see: shapes against each other, strides, devices.
"""
from __future__ import annotations

from typing import Any

from ._answers import OperandSpec
from ._arrays import Operand, operand
from ._call import Call, Fields


class Matrix:
    """A stored matrix, or a batch of them: rows, columns, and the strides that are not the packed ones."""

    def __init__(self, x: Operand):
        if len(x.shape) not in (2, 3):
            raise ValueError(f"{x.name}: {len(x.shape)} dimensions {x.shape}; need 2, or 3 with a batch")
        self.batch = x.shape[0] if len(x.shape) == 3 else None
        self.rows, self.columns = x.shape[-2:]
        if 0 in x.shape:  # strides of nothing mean nothing
            self.leading, self.batch_stride = self.columns, self.rows * self.columns if self.batch is not None else 0
            return
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

    def fields(self, letter: str, batch: int) -> Fields:
        fields: Fields = {} if self.leading == self.columns else {f"ld{letter}": self.leading}
        if batch != 1 and (self.batch_stride == 0 or self.batch_stride != self.rows * self.leading):
            fields[f"batch_stride_{letter}"] = self.batch_stride
        return fields


def _stored(letter: str, rows: int, columns: int) -> tuple[int, int]:
    return (rows, columns) if letter == "r" else (columns, rows)


class GemmCall(Call):
    """The operands of one product."""

    def __init__(self, a: Any, b: Any, out: Any, out_dtype: Any, bias: Any, d: Any, d_op: Any, scale_a: Any,
                 scale_b: Any):
        super().__init__(operand(a, "a"), operand(b, "b"), out, out_dtype, bias, d, d_op)
        if (scale_a is None) != (scale_b is None):
            raise ValueError("scale_a, scale_b: an array for both, or for neither; where one has none give ones")
        self.scales = [] if scale_a is None else [operand(scale_a, "scale_a"), operand(scale_b, "scale_b")]
        for x in self.scales:
            self.check_device(x)

    def fields(self, layout: str, activation: str | None, beta: bool, math: str, align: int) -> Fields:
        if not isinstance(layout, str) or len(layout) != 3 or set(layout) - {"r", "c"}:
            raise ValueError(f"layout: {layout!r}; need three letters of r and c, for A, B and C")
        a, b = Matrix(self.a), Matrix(self.b)
        m, k = _stored(layout[0], a.rows, a.columns)
        b_k, n = _stored(layout[1], b.rows, b.columns)
        if k != b_k:
            raise ValueError(f"a {self.a.shape} and b {self.b.shape} do not match in layout {layout}: "
                             f"a has k={k}, b has k={b_k}{_layout_hint(layout, k, b)}")
        batch = self._batch(a, b)
        self.made_shape = (() if a.batch is None and b.batch is None else (batch,)) + _stored(layout[2], m, n)
        fields: Fields = {"op": "gemm", "m": m, "n": n, "k": k, "layout": layout, "batch": batch, **self.type_fields(),
                          **a.fields("a", batch), **b.fields("b", batch)}
        if self.out is not None:
            if self.out.shape != self.made_shape:
                raise ValueError(f"out: shape {self.out.shape}, need {self.made_shape}")
            fields.update(Matrix(self.out).fields("c", batch))
        self._check_more(n)
        return {**fields, **self._scale_field(m, n), **self.more_fields(activation, beta, math, align)}

    def out_shape(self, spec: OperandSpec) -> tuple[int, ...]:
        return self.made_shape  # a batch of one is a batch here, which a problem does not tell from none

    def _batch(self, a: Matrix, b: Matrix) -> int:
        sizes = {x.batch for x in (a, b) if x.batch is not None and x.batch != 1}
        if len(sizes) > 1:
            raise ValueError(f"a has a batch of {a.batch}, b of {b.batch}; need the same, or 1")
        return sizes.pop() if sizes else 1

    def _check_more(self, n: int) -> None:
        if self.bias is not None:
            _check_vector(self.bias, n, "n")
        for x in self.d:
            if x.shape != self.made_shape:
                raise ValueError(f"{x.name}: shape {x.shape}, need the output's {self.made_shape}")

    def _scale_field(self, m: int, n: int) -> Fields:
        if not self.scales:
            return {}
        single = all(_count(x) == 1 for x in self.scales)
        for x, length, letter in zip(self.scales, (m, n), "mn"):
            _check_vector(x, 1 if single else length, "1 value, or " + letter)
            if x.dtype != "fp32":
                raise TypeError(f"{x.name}: {x.dtype}; need float32")
        return {"scale": "tensor" if single else "row"}


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
