# SPDX-License-Identifier: MIT
"""Recording which problems a program would run, in place of running them."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from . import _library
from ._answers import OperandSpec, operand_specs
from ._runtime import Executable


class Recording:
    """Problems in the order of their first use, each once, by device."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str], int] = {}  # how often each was run

    def add(self, device: str, problem: str) -> None:
        self._problems[device, problem] = self._problems.get((device, problem), 0) + 1

    @property
    def devices(self) -> list[str]:
        return list(dict.fromkeys(device for device, _ in self._problems))

    def problems(self, device: str | None = None) -> list[str]:
        """The texts of the problems, of one device or of all."""
        return list(dict.fromkeys(text for at, text in self._problems if device in (None, at)))

    def counts(self) -> dict[str, int]:
        """How often each problem ran, on any device."""
        counts: dict[str, int] = {}
        for (_, text), count in self._problems.items():
            counts[text] = counts.get(text, 0) + count
        return counts


class Described(Executable):
    """A problem's description of its operands. It cannot be launched."""

    def __init__(self, fields: str, device: str):
        facts: dict[str, Any] = _library.call("tilewise_problem_describe", fields)
        self.device = device
        self.problem = facts["text"]
        self.workspace_bytes = 0
        self.operands: dict[str, OperandSpec] = operand_specs(facts["operands"])


class _Now(threading.local):
    recording: Recording | None = None


_now = _Now()
_of_all: Recording | None = None  # of all threads: gradients are computed on others than the caller's


def active() -> Recording | None:
    """Where this thread's problems are recorded, None where they are run."""
    return _of_all if _now.recording is None else _now.recording


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Collects problems. Inside it, gemm and the convolutions run nothing; they return outputs with arbitrary contents.

        with tilewise.recording() as recorded:
            step(model, batch)
        tilewise.build(recorded.problems())
    """
    global _of_all
    before, _of_all = _of_all, Recording()
    try:
        yield _of_all
    finally:
        _of_all = before


@contextlib.contextmanager
def recording_here() -> Iterator[Recording]:
    """As `recording`, for this thread alone: others go on running."""
    before, _now.recording = _now.recording, Recording()
    try:
        yield _now.recording
    finally:
        _now.recording = before
