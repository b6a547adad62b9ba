# SPDX-License-Identifier: MIT
"""Calls that were made before: a prepared kernel for each kind of operands, found by one key, and its launch.

tilewise.gemm and the convolutions make the key from what they are given; on a miss they work the problem out (Call) and
keep the entry. A hit only hands over addresses.
"""
from __future__ import annotations

import os
from typing import Any

from . import _arrays, _recording
from ._call import Call, Fields
from ._devices import gpu_index
from ._operands import current_stream, make_on_stream, stream_handle
from ._runtime import Executable, most_kept, open_executable, threads_like_torch
from ._workspace import workspace as workspace_for
from .problem import Problem


class Entry:
    """A prepared kernel, and how to make its output where none is given."""

    __slots__ = ("executable", "out_shape", "make_out", "gpu_index")

    def __init__(self, executable: Executable, out_shape: tuple[int, ...]):
        self.executable = executable
        self.out_shape = out_shape
        self.make_out: _arrays.Maker | None = None
        self.gpu_index = gpu_index(executable.device)


entries: dict[Any, Entry] = {}
os.register_at_fork(after_in_child=entries.clear)


def is_key(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def prepare_entry(key: Any, call: Call, fields: Fields, strategy: str | None, kernel: str | None, like: Any,
                  stream: Any) -> Entry:
    """Prepares the problem of these fields and keeps it under the key; `like` is the array whose library and stream count."""
    handle: int | None = None  # of interest for measuring alone: while it is captured, nothing is measured
    if strategy == "measure" and stream is not None:
        handle = stream_handle(stream, call.device)
    elif strategy == "measure" and gpu_index(call.device) >= 0:
        handle = current_stream(like, gpu_index(call.device))
    problem = Problem(fields)
    call.check_against(problem.text, problem.operands)  # before anything is measured or compiled for it
    if _recording.active() is not None:  # nothing is prepared and nothing kept
        described = _recording.Described(problem.text, call.device)
        return Entry(described, call.out_shape(described.operands["c"]))
    threads = threads_like_torch() if call.device == "cpu" and _arrays.is_torch(like) else 0
    executable = open_executable(problem.text, call.device, strategy, kernel, None, None, Executable, handle, threads)
    entry = Entry(executable, call.out_shape(executable.operands["c"]))
    if len(entries) >= most_kept():  # programs with ever new shapes must not grow for ever
        for old in list(entries)[:len(entries) // 2]:  # those that came first
            entries.pop(old, None)
    # A problem that could not be measured during a capture is measured the next time.
    if not any(note["kind"] == "capture" for note in executable.plan.notes):
        entries[key] = entry
    return entry


def launch(entry: Entry, like: Any, address_a: int, address_b: int, out: Any, address_c: int, more: Any, alpha: float,
           beta: float, stream: Any, workspace: Any) -> Any:
    """One launch; returns the output, made in the library and on the device of `like` if it was not given."""
    executable = entry.executable
    handle: int | None = None
    if stream is not None:
        handle = stream_handle(stream, executable.device)
    elif entry.gpu_index >= 0:
        handle = current_stream(like, entry.gpu_index)
    if out is None:
        make = entry.make_out or _arrays.maker_like(like, entry.out_shape, executable.operands["c"].dtype)
        entry.make_out = make
        out, address_c = make() if stream is None else make_on_stream(make, like, stream)
    recorded = _recording.active()
    if recorded is not None:
        recorded.add(executable.device, executable.problem)
        return out
    if executable.workspace_bytes or workspace is not None:
        with workspace_for(executable.workspace_bytes, workspace, like, executable.device, stream) as address:
            executable.launch(address_a, address_b, address_c, more, alpha, beta, handle, address)
    else:
        executable.launch(address_a, address_b, address_c, more, alpha, beta, handle, None)
    return out
