# SPDX-License-Identifier: MIT
"""The list of every time that a model was scored on a test set. A test set that is looked at often becomes one that is trained for, so each
look leaves a line."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Sequence
from typing import Any

from .model_folder import FACTS, today

_KEPT = ("problems", "mean", "median", "p10", "p1", "min", "match", "match_within_noise", "top3", "top8", "below_90", "accuracy", "pool",
         "noise", "ceiling")


def checkout() -> pathlib.Path | None:
    """Where the sources of this package are, if it is used from there."""
    root = pathlib.Path(__file__).resolve().parents[3]
    return root if (root / "CMakeLists.txt").is_file() else None


def default_path() -> pathlib.Path | None:
    root = checkout()
    return root / "data" / "test_scores.jsonl" if root else None


def folder_of(model: str) -> pathlib.Path | None:
    """The folder of a model that a plan names: the folder itself, or for one of the library's own that in the sources."""
    root, place = checkout(), pathlib.Path(model)
    for folder in (place, *([root / "models" / place.name] if root else [])):
        if (folder / FACTS).is_file():
            return folder
    return None


def _commit() -> str:
    root = checkout()
    if root is None:
        return ""
    try:
        done = subprocess.run(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    except OSError:  # no git here
        return ""
    return done.stdout.strip()


def add(path: str | os.PathLike[str], sets: Sequence[str], model: str, scores: dict[str, Any], **more: Any) -> None:
    """One line; `model` is the hash of its trees, or where it came from."""
    where = pathlib.Path(path)
    where.parent.mkdir(parents=True, exist_ok=True)
    line = {"date": today(), "sets": list(sets), "model": model, "commit": _commit(), **more,
            "scores": {name: scores[name] for name in _KEPT if name in scores}}
    with open(where, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
