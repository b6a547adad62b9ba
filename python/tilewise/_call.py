# SPDX-License-Identifier: MIT
"""The work of the first call with operands of a kind, whatever the operation: the operands spelled out, checked against
each other as far as the library cannot see them, and the fields of the problem that every operation has. Fields travel as
values, in JSON: what a caller gives for one can never become another.
"""
from __future__ import annotations

from typing import Any

from . import _arrays
from ._answers import OperandSpec
from ._arrays import Operand, operand
from ._dlpack import packed
from ._operands import check_operand, d_ops_text, list_of_d

Fields = dict[str, Any]  # of a problem: docs/problems.md


class Call:
    """The operands of one call, as a, b and c of the library but under the caller's names."""

    def __init__(self, a: Operand, b: Operand, out: Any, out_dtype: Any, bias: Any, d: Any, d_op: Any):
        self.a, self.b = a, b
        self.out = None if out is None else operand(out, "out")
        self.out_dtype = None if out_dtype is None else _arrays.dtype_name(out_dtype)
        self.bias = None if bias is None else operand(bias, "bias")
        self.d = [operand(x, f"d[{i}]") for i, x in enumerate(list_of_d(d))]
        self.d_ops = d_ops_text(d_op).split("+")
        self.scales: list[Operand] = []
        self.device = a.device
        if self.out is not None and not self.out.writable:
            raise ValueError("out: it is read-only")
        for x in (b, self.out, self.bias, *self.d):
            if x is not None:
                self.check_device(x)

    def check_device(self, x: Operand) -> None:
        if x.device != self.device:
            raise ValueError(f"{x.name}: it is on {x.device}, but {self.a.name} is on {self.device}; move one of them")

    def type_fields(self) -> Fields:
        given = None if self.out is None else self.out.dtype
        if given and self.out_dtype and given != self.out_dtype:
            raise TypeError(f"out_dtype: {self.out_dtype}, but out is of {given}")
        dtype = given or self.out_dtype
        return {"dtype": self.a.dtype, "b": self.b.dtype, **({"out": dtype} if dtype else {})}

    def more_fields(self, activation: str | None, beta: bool, math: str, align: int) -> Fields:
        if beta and self.out is None:
            raise ValueError("beta: it multiplies what is in out, so out must be given")
        for name, word in (("activation", activation or ""), ("math", math)):
            if not isinstance(word, str):
                raise TypeError(f"{name}: expected a word, got {type(word).__name__}")
        epilogue = "+".join(word for word in ("bias" if self.bias else None, activation) if word)
        last = self.last_d_ops(epilogue)
        return {**({"epilogue": epilogue} if epilogue else {}), **({"d": "+".join(last)} if last else {}),
                "beta": bool(beta), "math": math, "align": align}

    def last_d_ops(self, epilogue: str) -> list[str]:
        """How the arrays of d are combined that no add or mul of the epilogue takes."""
        left = max(0, len(self.d) - sum(word in ("add", "mul") for word in epilogue.split("+")))
        words = self.d_ops * left if len(self.d_ops) == 1 else self.d_ops
        if left and len(words) != left:
            raise ValueError(f"d_op: {len(words)} operations for {left} arrays; need one, or one for each")
        return words if left else []

    def out_shape(self, spec: OperandSpec) -> tuple[int, ...]:
        """The shape and type of an output that is made."""
        return spec.shape

    def check_against(self, problem: str, operands: dict[str, OperandSpec]) -> None:
        """Every operand that the problem has is there, and is as the problem has it, also an output that is made."""
        given = {"a": self.a, "b": self.b, "bias": self.bias, **{x.name: x for x in self.scales},
                 **{f"d{i}": x for i, x in enumerate(self.d)}}
        for name, spec in operands.items():
            x = self.out or self._made(spec) if name == "c" else given.pop(name, None)
            if x is None:
                raise ValueError(f"{name}: the problem {problem} needs it")
            check_operand(x, spec, problem)
        for name, x in given.items():
            if x is not None:
                raise ValueError(f"{name}: the problem {problem} has none")

    def _made(self, spec: OperandSpec) -> Operand:
        shape = self.out_shape(spec)
        return Operand("out", self.out_dtype or spec.dtype, shape, packed(shape), self.device, True, 0, 0)
