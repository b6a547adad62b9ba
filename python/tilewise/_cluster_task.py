# SPDX-License-Identifier: MIT
"""The task of a worker of `tilewise cluster`: it sweeps one problem with the tilewise command there, and returns the records."""
from __future__ import annotations

import contextlib
import csv
import ctypes
import dataclasses
import fcntl
import hashlib
import io
import os
import pathlib
import signal
import subprocess
import tempfile
from collections.abc import Iterator

from ._command import command
from ._files import read_text, whole_records
from ._library import TilewiseError
from ._verbs import usage_error
from .problem import Problem

_PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>
_libc = ctypes.CDLL(None)

Cells = list[str]


@dataclasses.dataclass(frozen=True)
class Task:
    """A problem's line, with the network behind it; the name of the set; the device and the other words of sweep."""

    line: str
    name: str
    device: str
    words: tuple[str, ...]


def _die_with_parent() -> None:
    # A sweep whose worker is killed would go on and keep the device from the next.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def read_cells(path: pathlib.Path) -> tuple[Cells, list[Cells]]:
    """Header and records of a CSV file, without a last line that has no end."""
    text = whole_records(read_text(path)) if path.exists() else ""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    return (rows[0], rows[1:]) if rows else ([], [])


@contextlib.contextmanager
def _device_to_itself(device: str) -> Iterator[int]:
    """Workers on one machine that have the same device take turns; the lock goes with whoever has it open."""
    visible = sorted(f"{name}={value}" for name, value in os.environ.items() if name.endswith("_VISIBLE_DEVICES"))
    digest = hashlib.sha256("\n".join([device, *visible]).encode()).hexdigest()[:16]
    path = pathlib.Path(tempfile.gettempdir()) / f"tilewise-cluster-{os.getuid()}-{digest}.lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def sweep_one(task: Task) -> tuple[Cells, list[Cells], str]:
    """Header, records, and what the command said where it failed."""
    with tempfile.TemporaryDirectory(prefix="tilewise-cluster-") as folder:
        problems, out = pathlib.Path(folder) / f"{task.name}.txt", pathlib.Path(folder) / "records.csv"
        problems.write_text(task.line + "\n", encoding="utf-8")
        words = [command(), "sweep", "--problems", problems, "--device", task.device, "--out", out, *task.words]
        with _device_to_itself(task.device) as lock:  # which the sweep has open as well: until it is gone, too
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, pass_fds=[lock],
                                  preexec_fn=_die_with_parent)
        header, records = read_cells(out)
        lines = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        return header, records, lines[-1] if done.returncode else ""


def problem_lines(problems: str) -> tuple[str, list[str]]:
    """The name of a set or file, and its lines, one problem each."""
    path = pathlib.Path(problems)
    if path.is_file():
        name, text = path.stem, read_text(path)
    else:
        done = subprocess.run([command(), "problems", problems], capture_output=True, text=True, check=False)
        if done.returncode:
            raise usage_error(f"--problems {problems}: no such file, and {done.stderr.strip().removeprefix('tilewise: ')}")
        name, text = problems, done.stdout
    lines = [line for line in text.split("\n") if line.partition("#")[0].strip()]
    if not lines:
        raise usage_error(f"--problems {problems}: there is no problem in it")
    return name, lines


def problem_of(line: str, where: str) -> str:
    """The text of a line's problem; `where` is for messages."""
    text = line.partition("#")[0].strip()
    try:
        return Problem(text).text
    except TilewiseError as error:
        raise usage_error(f"{where}: '{text}': {error}") from None
