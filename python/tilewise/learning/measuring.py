# SPDX-License-Identifier: MIT
"""Sweeps by the tilewise command, as the checks and the training of one's own machine need them."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence

from .. import _library
from .._command import command
from .._verbs import usage_error


def sweep(problems: str, device: str, out: pathlib.Path, more: Sequence[str] = ()) -> None:
    """Measures, and writes records; a failure is the command's, with its message. On a terminal the command shows how far it is."""
    words = [str(command()), "sweep", "--problems", problems, "--device", device, "--out", str(out), "--json", *more]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=None if sys.stderr.isatty() else subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        return
    try:
        told = json.loads(done.stdout.splitlines()[-1])["error"]["message"]
    except (IndexError, KeyError, TypeError, ValueError):
        told = (done.stderr or "").strip() or f"it ended with {done.returncode}"
    raise _library.TilewiseError(done.returncode if done.returncode > 0 else 1, f"sweep of {problems} on {device}: {told}")


def measure_kernels(problem: str, kernels: Sequence[str], device: str, folder: pathlib.Path, number: int) -> pathlib.Path:
    """Measures some kernels on one problem, in turns and checked; returns the file of records."""
    names = list(dict.fromkeys(kernels))
    if not names:
        raise usage_error(f"{problem}: no kernel to measure")
    problems, config, out = (folder / f"{number}.{suffix}" for suffix in ("txt", "json", "csv"))
    problems.write_text(f"{problem}\n", encoding="utf-8")
    config.write_text(json.dumps(names), encoding="utf-8")
    sweep(str(problems), device, out, ["--config", str(config)])
    return out
