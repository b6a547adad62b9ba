# SPDX-License-Identifier: MIT
"""Notes of the library as Python's warnings, once for each kind: each tells of something that was done otherwise than it should be."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping

_PACKAGE = os.path.dirname(__file__) + os.sep
_said: set[str] = set()


class TilewiseWarning(UserWarning):
    """The library made a compromise: it could not keep a kernel, it padded a problem, ..."""


def warn_of(notes: Iterable[Mapping[str, str]]) -> None:
    for note in notes:
        if note["kind"] not in _said:
            _said.add(note["kind"])
            warnings.warn(f"{note['message']} ({note['kind']}; said once)", TilewiseWarning, stacklevel=_caller())


def _caller() -> int:
    """The level of the first frame outside this package, as warn_of counts it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
