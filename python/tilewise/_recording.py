# SPDX-License-Identifier: MIT
"""Recording which problems a program would run, in place of running them."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Iterator
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
_open: list[Recording] = []  # of all threads, so that calls ask no more than this where nothing is recorded
_KEY = "tilewise.recording"

# Entered with every recording: what else must know of it, in this thread.
surroundings: list[Callable[[], contextlib.AbstractContextManager[Any]]] = []


def active() -> Recording | None:
    """Where this thread's problems are recorded, None where they are run."""
    return (_now.recording or _of_gradients()) if _open else None


def _of_gradients() -> Recording | None:
    """On a GPU torch computes gradients on threads of its own, and gives them what the caller's thread has kept so."""
    torch = sys.modules.get("torch")
    if torch is None or not torch._C._is_key_in_tls(_KEY):
        return None
    found: Recording | None = torch._C._get_obj_in_tls(_KEY)
    return found


def _give_to_gradients(recording: Recording | None) -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if not _torch_counts():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(recording))
    torch._C._stash_obj_in_tls(_KEY, recording)


@functools.cache
def _torch_counts() -> bool:
    """Whether torch takes a reference to what it stashes. 2.11 does not, but gives one back in the end."""
    probe = object()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(probe))  # the one that it may give back
    before = sys.getrefcount(probe)
    sys.modules["torch"]._C._stash_obj_in_tls(f"{_KEY}.probe", probe)
    return sys.getrefcount(probe) > before


@contextlib.contextmanager
def recording() -> Iterator[Recording]:
    """Collects the problems of this thread, with those of the gradients that it asks torch for. Inside it, gemm and the
    convolutions run nothing; they return outputs with arbitrary contents. Other threads go on running.

        with tilewise.recording() as recorded:
            step(model, batch)
        tilewise.build(recorded.problems())
    """
    # A thread of torch's computes gradients for the outer recording, so the two may differ.
    before, of_gradients, recorded = _now.recording, _of_gradients(), Recording()
    _open.append(recorded)
    try:
        _now.recording = recorded
        _give_to_gradients(recorded)
        with contextlib.ExitStack() as entered:
            for surrounding in surroundings:
                entered.enter_context(surrounding())
            yield recorded
    finally:
        _now.recording = before
        _give_to_gradients(of_gradients)
        _open.remove(recorded)
