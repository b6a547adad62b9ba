# SPDX-License-Identifier: MIT
"""Listing kernels, selecting one for a problem, checking a config.

Only what the caller gave is passed on: what is left out has the library's default, not one of this file. The
dataclasses hold the fields a program may rely on; a field that a newer library adds is left aside.
"""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from . import _library


def _from_json(cls: type[Any], data: Mapping[str, Any]) -> Any:
    return cls(**{field.name: data[field.name] for field in dataclasses.fields(cls) if field.name in data})


def _list_of(cls: type[Any], data: list[Any]) -> list[Any]:
    return [_from_json(cls, item) for item in data]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A config with code for an arch; `available` is False where it has no code yet."""

    name: str
    id: str
    available: bool
    config: dict[str, Any] = dataclasses.field(repr=False, hash=False)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The outcome of a selection: the kernel's name, where the choice came from, and why."""

    kernel: str
    source: str
    why: str
    available: bool
    notes: list[dict[str, str]] = dataclasses.field(default_factory=list, hash=False)  # what is not as it should be


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A kernel that can do the problem, with its predicted time in microseconds."""

    name: str
    predicted_us: float | None = None
    padded: bool = False  # only with the problem padded, since no kernel fits it as it is


@dataclasses.dataclass(frozen=True)
class Rejection:
    """A kernel that cannot do the problem: the rule it breaks, what it has and what the rule needs."""

    name: str
    rule: str
    have: str
    need: str


@dataclasses.dataclass(frozen=True)
class Selection:
    """The plan, or None where every kernel was rejected; the candidates, best first; the rejected ones."""

    plan: Plan | None
    candidates: list[Candidate]
    rejected: list[Rejection]

    def __repr__(self) -> str:
        return (f"Selection(plan={self.plan!r}, candidates=<{len(self.candidates)} kernels>, "
                f"rejected=<{len(self.rejected)} kernels>)")


@dataclasses.dataclass(frozen=True)
class Violation:
    """A rule that a config breaks."""

    rule: str
    have: str
    need: str


@dataclasses.dataclass(frozen=True)
class Check:
    """Whether a config is valid; the rules it breaks; with fix, the corrected config and what was changed."""

    valid: bool
    violations: list[Violation]
    corrected: dict[str, Any] | None = None
    changes: list[Any] | None = None
    remaining: list[Violation] | None = None


def _options(**given: Any) -> str:
    return json.dumps({key: value for key, value in given.items() if value is not None})


def kernels(op: str | None = None, arch: str | None = None, rule_set: str | None = None,
            dtype: str | None = None) -> list[Kernel]:
    """The kernels of a rule set, of one op, arch and dtype where given."""
    answer = _library.call("tilewise_kernels", _options(op=op, arch=arch, rule_set=rule_set, dtype=dtype))
    return _list_of(Kernel, answer["kernels"])


def select(problem: str, *, arch: str | None = None, rule_set: str | None = None) -> Selection:
    """Picks the kernel for a problem, given in its one-line text form, and says which may run it and why others may not."""
    if not isinstance(problem, str):
        raise TypeError(f"problem: expected its text form, got {type(problem).__name__}")
    answer = _library.call("tilewise_select", problem, _options(arch=arch, rule_set=rule_set))
    plan = answer["plan"]
    return Selection(plan=_from_json(Plan, plan) if plan is not None else None,
                     candidates=_list_of(Candidate, answer["candidates"]),
                     rejected=_list_of(Rejection, answer["rejected"]))


def check(config: str | Mapping[str, Any] | Kernel, fix: bool = False) -> Check:
    """Checks a config, given as a kernel, a kernel's name, JSON text or a dict; fix=True also corrects it."""
    if isinstance(config, Kernel):
        config = config.config
    if isinstance(config, Mapping):
        config = json.dumps(dict(config))
    elif not isinstance(config, str):
        raise TypeError(f"config: expected a name, JSON text, a dict or a Kernel, got {type(config).__name__}")
    answer = _library.call("tilewise_check", config, int(bool(fix)))
    return Check(valid=answer["valid"], violations=_list_of(Violation, answer["violations"]),
                 corrected=answer.get("corrected"), changes=answer.get("changes"),
                 remaining=_list_of(Violation, answer["remaining"]) if "remaining" in answer else None)
