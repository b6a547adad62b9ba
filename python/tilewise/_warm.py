# SPDX-License-Identifier: MIT
"""Getting ready for a list of problems: everything compiled on all cores, and measured, before the first run."""
from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from . import _entry, _library, _structs
from ._devices import device_name
from ._prepared import prepare
from ._runtime import check_number, context, contexts_of, select_options
from .problem import Problem, problem_text

Progress = Callable[[int, int, str], Any]

when_tuned: list[Callable[[], None]] = []  # what else keeps kernels that were chosen before


@dataclass(frozen=True)
class Built:
    """The outcome of `build`."""

    kernels: dict[str, str]  # of each problem that has one
    errors: dict[str, str]  # why a problem has none, or why a kernel could not be compiled
    compiled: int


@dataclass(frozen=True)
class Tuned:
    """The outcome of `tune`: what it measured, and the problems that it had no time for."""

    kernels: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


class _Bar:
    """A bar on standard error that stands until it is closed."""

    def __call__(self, done: int, total: int, doing: str) -> None:
        filled = 20 * done // max(total, 1)
        line = f"[{'#' * filled:.<20}] {done} of {total}  {doing}"
        sys.stderr.write(f"\r{line[:_columns() - 1]}\033[K")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _is_terminal() -> bool:
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):
        return False


def progress_of(progress: bool | Progress | None) -> tuple[Progress | None, Callable[[], None]]:
    """The report of progress, and what ends it."""
    if callable(progress):
        return progress, lambda: None
    if progress is False or not (progress or _is_terminal()):
        return None, lambda: None
    bar = _Bar()
    return bar, bar.close


def _texts(problems: Iterable[str | Problem]) -> list[str]:
    if isinstance(problems, (str, Problem)):
        raise TypeError(f"problems: expected a list of problems, got one; put it into a list: [{str(problems)!r}]")
    return [problem_text(problem) for problem in problems]


def build(problems: Iterable[str | Problem], *, device: Any = "cpu", strategy: str | None = None, jobs: int = 0,
          threads: int = 0, progress: bool | Progress | None = None) -> Built:
    """Compiles the missing kernels of problems for a device, on all cores, so that no first call waits for them.

    strategy    how kernels are chosen; "measure" compiles all that would be measured
    jobs        compilers at a time; 0: one for each CPU
    threads     of the CPU that will compute; 0: all that this process may use. For torch's tensors: torch.get_num_threads()
    progress    a bar on standard error if that is a terminal; True: always, False: never; or a function that is called
                with the number done, the number of all, and the kernel
    """
    tell, close = progress_of(progress)
    raised: list[BaseException] = []

    def on_progress(_user: Any, done: int, total: int, kernel: bytes) -> int:
        try:
            assert tell is not None
            tell(done, total, kernel.decode())
            return 0
        except BaseException as error:  # an interrupt, say: raised again where it can be
            raised.append(error)
            return 1

    lines, opened = "\n".join(_texts(problems)), context(device_name(device), _library.whole(threads, "threads"))
    callback = _structs.Progress(on_progress) if tell else _structs.Progress(0)
    try:
        answer = _library.call("tilewise_build_problems", opened, lines,
                               ctypes.byref(select_options(strategy, None, None, None)), _library.whole(jobs, "jobs"),
                               callback, None)
    except _library.TilewiseError:
        if raised:
            raise raised[0] from None
        raise
    finally:
        close()
    found = answer["problems"]
    errors = {item["problem"]: item["error"]["message"] for item in found if "error" in item}
    errors.update((item["kernel"], item["error"]["message"]) for item in answer["failures"])
    return Built({item["problem"]: item["kernel"] for item in found if "kernel" in item}, errors, answer["compiled"])


def tune(problems: Iterable[str | Problem], *, device: Any = "cpu", seconds: float = 60.0, jobs: int = 0,
         threads: int = 0, progress: bool | Progress | None = None) -> Tuned:
    """Measures the best few kernels of each problem and remembers the winners. After `seconds` it starts no other problem.
    Compiling comes first and does not count.

    It measures the earlier winner of a problem again with the others. A winner counts for its number of threads.
    jobs, threads, progress: as in `build`.
    """
    texts = _texts(problems)
    check_number(seconds, "seconds")
    if not seconds >= 0:
        raise ValueError(f"seconds: {seconds}; need 0 or more")
    build(texts, device=device, strategy="measure", jobs=jobs, threads=threads, progress=progress)
    tell, close = progress_of(progress)
    tuned = Tuned({})
    end = time.monotonic() + seconds
    try:
        for i, text in enumerate(texts):
            if time.monotonic() >= end:
                tuned.left.append(text)
                continue
            if tell:
                tell(i, len(texts), text)
            try:
                tuned.kernels[text] = prepare(text, device=device, strategy="measure", threads=threads).kernel
            except _library.TilewiseError as error:
                tuned.errors[text] = str(error)
    finally:
        close()
        _choose_anew(device_name(device))
    return tuned


def _choose_anew(device: str) -> None:
    """Has problems that were chosen before the records were there chosen again."""
    for handle in contexts_of(device):
        path = _library.call("tilewise_context_describe", handle)["tuning"]
        if path and os.path.exists(path):
            _library.check("tilewise_load_tuning", handle, path, None)
    _entry.entries.clear()
    for forget in when_tuned:
        forget()
