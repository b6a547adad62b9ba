# SPDX-License-Identifier: MIT
"""The library's answers as Python values. The dataclasses hold the fields a program may rely on; a field that a newer
library adds is left aside.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def from_json(cls: type[Any], data: Mapping[str, Any]) -> Any:
    return cls(**{field.name: data[field.name] for field in dataclasses.fields(cls) if field.name in data})


def list_of(cls: type[Any], data: list[Any]) -> list[Any]:
    return [from_json(cls, item) for item in data]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A config with code for an arch; `available` is False where it has no code yet."""

    name: str
    id: str
    available: bool
    config: dict[str, Any] = dataclasses.field(repr=False, hash=False)
    family: str = ""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A kernel that can do the problem, with its predicted time in microseconds. Those whose time a learned model has corrected come first,
    and have the analytic one beside it."""

    name: str
    predicted_us: float | None = None
    padded: bool = False  # only with the problem padded, since no kernel fits it as it is
    analytic_us: float | None = None


@dataclasses.dataclass(frozen=True)
class Rejection:
    """A kernel that cannot do the problem: the rule it breaks, what it has and what the rule needs."""

    name: str
    rule: str
    have: str
    need: str


@dataclasses.dataclass(frozen=True)
class Plan:
    """The outcome of a selection: the kernel's name, the source of the choice and its reason, the kernels that may run the
    problem, best first, and those that may not. If none may, `kernel` is None and the plan is false."""

    kernel: str | None
    source: str = ""
    why: str = ""
    available: bool = False
    notes: list[dict[str, str]] = dataclasses.field(default_factory=list, hash=False)  # what is not as it should be
    candidates: list[Candidate] = dataclasses.field(default_factory=list, hash=False, compare=False)
    rejected: list[Rejection] = dataclasses.field(default_factory=list, hash=False, compare=False)

    def __bool__(self) -> bool:
        return self.kernel is not None

    def __repr__(self) -> str:
        notes = f", notes={self.notes!r}" if self.notes else ""
        return (f"Plan(kernel={self.kernel!r}, source={self.source!r}, why={self.why!r}, available={self.available}"
                f"{notes}, candidates=<{len(self.candidates)} kernels>, rejected=<{len(self.rejected)} kernels>)")


@dataclasses.dataclass(frozen=True)
class Violation:
    """A rule that a config breaks."""

    rule: str
    have: str
    need: str


@dataclasses.dataclass(frozen=True)
class Check:
    """Whether a config is valid; the rules it breaks; whether there is code for it, and if not, why; with fix, the corrected
    config, which has code where its arch has any, and what was changed."""

    valid: bool
    violations: list[Violation]
    available: bool = False
    without_code: Violation | None = None
    corrected: dict[str, Any] | None = None
    changes: list[Any] | None = None
    remaining: list[Violation] | None = None

    def __bool__(self) -> bool:
        return self.valid


@dataclasses.dataclass(frozen=True)
class OperandSpec:
    """An operand of a problem: its type, shape, and strides in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def operand_specs(data: list[Any]) -> dict[str, OperandSpec]:
    return {item["name"]: OperandSpec(item["name"], item["dtype"], tuple(item["shape"]), tuple(item["strides"]))
            for item in data}


def plan_from(answer: Mapping[str, Any]) -> Plan:
    """Of {"plan", "candidates", "rejected"}."""
    plan = answer["plan"]
    rejected = list_of(Rejection, answer["rejected"])
    why = "" if plan is not None else f"no kernel may run the problem; {len(rejected)} were rejected, see .rejected"
    return dataclasses.replace(from_json(Plan, plan) if plan is not None else Plan(None, "", why),
                               candidates=list_of(Candidate, answer["candidates"]), rejected=rejected)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A kernel's time on a problem, and the predicted time. `roof` is the share of the device's peak that the kernel reaches.
    `spread` is relative. Above 0.1 a time says little, and has a note."""

    problem: str
    kernel: str
    us: float
    spread: float
    tflops: float
    gbps: float
    roof: float
    predicted_us: float | None = None
    notes: list[dict[str, str]] = dataclasses.field(default_factory=list, hash=False)


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measurements, fastest first, and for each kernel that did not run {"problem", "kernel", "reason"}."""

    device: str
    results: list[Measurement]
    failures: list[dict[str, str]]
    notes: list[dict[str, str]] = dataclasses.field(default_factory=list, hash=False)  # what is not as it should be


@dataclasses.dataclass(frozen=True)
class Validation:
    """A run on random tensors, judged element by element. True where every element is within the tolerance."""

    problem: str
    kernel: str
    time_us: float
    tflops: float
    validation: dict[str, Any]  # ok, max_error, tolerance, ...

    @property
    def ok(self) -> bool:
        return bool(self.validation["ok"])

    def __bool__(self) -> bool:
        return self.ok
