# SPDX-License-Identifier: MIT
"""The commands that are written in Python. `tilewise VERB`, `python -m tilewise VERB`, `tilewise-VERB` and the original's scripts all
come here: a verb is a module with main(words), which returns the exit code, and what it raises becomes a message and an exit
code as those of the command's own.
"""
from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from ._library import TOOLCHAIN, TilewiseError, UsageError

VERBS = ("cluster", "convert", "crawl", "predict", "report", "train", "validate")
# The extra of the package that brings a module.
EXTRAS = {"dask": "cluster", "distributed": "cluster", "lightgbm": "train", "matplotlib": "train", "numpy": "numpy", "onnx": "onnx",
          "pandas": "report", "pyarrow": "report", "sklearn": "train", "torch": "torch"}
_USAGE = 2
_INTERRUPTED = 130


def usage_error(message: str) -> UsageError:
    """Makes the error that a verb raises for wrong words or files."""
    return UsageError(_USAGE, message)


class Parser(argparse.ArgumentParser):
    """The words of a verb. What is wrong with them is an error like any other, in JSON too."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise usage_error(message)


def _forget_output() -> None:
    """Has the interpreter not try again, when it ends, to write what nobody takes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(verb: str, code: int, message: str, as_json: bool) -> int:
    try:
        if as_json:
            print(json.dumps({"error": {"code": code, "message": message}}))
        sys.stdout.flush()
    except OSError:  # a full disk, say; the message below is what is left
        _forget_output()
    print(f"tilewise {verb}: {message}", file=sys.stderr)
    return code


def run(verb: str, words: Sequence[str]) -> int:
    """Runs a verb and returns its exit code."""
    return guarded(verb, lambda: int(importlib.import_module(f".{verb}", __package__).main(words)), "--json" in words)


def guarded(verb: str, work: Callable[[], int], as_json: bool = False) -> int:
    """Does the work of a verb, which returns the exit code; what is raised becomes one."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        return _fail(verb, TOOLCHAIN, f"it needs {error.name}, which is not installed; pip install 'tilewise[{extra}]' has it", as_json)
    except TilewiseError as error:
        return _fail(verb, error.code, str(error), as_json)
    except BrokenPipeError:  # nobody reads the output any more
        _forget_output()
        return 0
    except OSError as error:
        return _fail(verb, _USAGE, f"{error.filename}: {error.strerror}" if error.filename else str(error), as_json)
    except KeyboardInterrupt:
        return _INTERRUPTED


def main(words: Sequence[str]) -> int:
    """Runs the verb that is the first word."""
    if not words or words[0] not in VERBS:
        print(f"tilewise: this package has the verbs {', '.join(VERBS)}; not '{' '.join(words[:1])}'", file=sys.stderr)
        return _USAGE
    return run(words[0], words[1:])


def program() -> int:
    """Runs the verb of the program tilewise-VERB that pip has installed."""
    return main([pathlib.Path(sys.argv[0]).name.removeprefix("tilewise-"), *sys.argv[1:]])
