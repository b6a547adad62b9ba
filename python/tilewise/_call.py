# SPDX-License-Identifier: MIT
"""What the first call with operands of a kind works out, whatever the operation: the operands spelled out, checked against
each other as far as the library cannot see them, and the fields of the problem's text that every operation has.
"""
from __future__ import annotations

from typing import Any

from . import _arrays
from ._arrays import DEFAULT_ALIGN, Operand, operand
from ._operands import check_operand, list_of_d
from ._runtime import Executable


class Call:
    """The operands of one call, as a, b and c of the library but under the caller's names."""

    def __init__(self, a: Operand, b: Operand, out: Any, out_dtype: Any, bias: Any, d: Any, d_op: Any):
        self.a, self.b = a, b
        self.out = None if out is None else operand(out, "out")
        self.out_dtype = None if out_dtype is None else _arrays.dtype_name(out_dtype)
        self.bias = None if bias is None else operand(bias, "bias")
        self.d = [operand(x, f"d[{i}]") for i, x in enumerate(list_of_d(d))]
        self.d_ops = d_op.split("+") if isinstance(d_op, str) else list(d_op)
        if len(self.d_ops) == 1:
            self.d_ops *= len(self.d)
        if self.d and len(self.d_ops) != len(self.d):
            raise ValueError(f"d_op: {len(self.d_ops)} operations for {len(self.d)} arrays; need one, or one for each")
        self.device = a.device
        if self.out is not None and not self.out.writable:
            raise ValueError("out: it is read-only")
        for x in (b, self.out, self.bias, *self.d):
            if x is not None:
                self.check_device(x)

    def check_device(self, x: Operand) -> None:
        if x.device != self.device:
            raise ValueError(f"{x.name}: it is on {x.device}, but {self.a.name} is on {self.device}; move one of them")

    def type_fields(self) -> str:
        text = f",b={self.b.dtype}" if self.b.dtype != self.a.dtype else ""
        given = None if self.out is None else self.out.dtype
        if given and self.out_dtype and given != self.out_dtype:
            raise TypeError(f"out_dtype: {self.out_dtype}, but out is of {given}")
        dtype = given or self.out_dtype
        return text + (f",out={dtype}" if dtype else "")

    def more_fields(self, activation: str | None, beta: bool, math: str, align: int) -> str:
        if beta and self.out is None:
            raise ValueError("beta: it multiplies what is in out, so out must be given")
        epilogue = [word for word in ("bias" if self.bias else None, activation) if word]
        text = f",epilogue={'+'.join(epilogue)}" if epilogue else ""
        text += f",d={'+'.join(self.d_ops)}" if self.d else ""
        text += ",beta=1" if beta else ""
        text += f",math={math}" if math != "strict" else ""
        return text + (f",align={align}" if align != DEFAULT_ALIGN else "")

    def out_shape(self, executable: Executable) -> tuple[int, ...]:
        """Of an output that is made."""
        return executable.operands["c"].shape

    def check_against(self, executable: Executable) -> None:
        """What is left: types, shapes and strides that follow from the problem."""
        given = {"a": self.a, "b": self.b, "c": self.out, "bias": self.bias}
        given.update((f"d{i}", x) for i, x in enumerate(self.d))
        for name, x in given.items():
            if x is not None:
                check_operand(x, executable.operands[name])
