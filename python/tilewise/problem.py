# SPDX-License-Identifier: MIT
"""tilewise.Problem: what to compute, as an object. The library reads, completes and checks it; its fields are those of the
problem's JSON form (docs/problems.md), as attributes.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _library
from ._answers import OperandSpec, operand_specs
from ._arrays import json_text


class Problem:
    """A problem: `Problem("gemm:m=64,n=64,k=64,dtype=fp32")`, or `Problem("gemm", m=64, n=64, k=64, dtype="fp32")`.

    Its fields are attributes (`problem.m`, `problem.dtype`), str() is its one line of text. Equal problems are equal, and
    every function that takes a problem's text takes the object. An impossible problem is an UnsupportedError.

    text      the one line, in its one spelling
    flops     arithmetic operations;  bytes: of all operands
    operands  name: OperandSpec, with type, shape and strides
    gemm      the matrix product it amounts to: {"m", "n", "k", "batch"}
    output    the sizes of a convolution's output
    """

    def __init__(self, text: str | Mapping[str, Any] | Problem, /, **fields: Any):
        if isinstance(text, str) and ":" in text and fields and not text.lstrip().startswith("{"):
            text = Problem(text)
        if isinstance(text, Problem):
            text = {**text.fields, **fields} if fields else text.text
        elif isinstance(text, str) and fields:
            text = {"op": text, **fields}
        elif isinstance(text, Mapping):
            text = {**text, **fields}
        elif not isinstance(text, str):
            raise TypeError(f"problem: expected its text, its fields or a Problem, got {type(text).__name__}")
        if not isinstance(text, str):
            text = json_text(text)
        facts = _library.call("tilewise_problem_describe", text)
        self.text: str = facts["text"]
        self.fields: dict[str, Any] = facts["problem"]
        self.flops: float = facts["flops"]
        self.bytes: float = facts["bytes"]
        self.gemm: dict[str, int] = facts["gemm"]
        self.output: list[int] | None = facts.get("output")
        self.operands: dict[str, OperandSpec] = operand_specs(facts.get("operands", []))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(f"the problem has no field {name!r} that is not at its default; "
                                 f"it has {', '.join(self.__dict__.get('fields', {}))}") from None

    def replace(self, **fields: Any) -> Problem:
        """Returns a copy with other values of these fields."""
        return Problem(self.fields, **fields)

    def to_json(self) -> str:
        return json.dumps(self.fields)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Problem({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> Any:
        return Problem, (self.text,)


def problem_text(problem: str | Problem) -> str:
    """The text for the library."""
    if isinstance(problem, Problem):
        return problem.text
    if not isinstance(problem, str):
        raise TypeError(f"problem: expected its text form or a Problem, got {type(problem).__name__}")
    return problem
