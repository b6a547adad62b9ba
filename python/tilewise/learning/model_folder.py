# SPDX-License-Identifier: MIT
"""Folders of models, as the library reads them: model.txt with the trees, in LightGBM's text, and model.json with what they are of."""
from __future__ import annotations

import datetime
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any

from .. import _library
from .._verbs import usage_error

FORMAT = 1
TREES, FACTS = "model.txt", "model.json"
MOST_BYTES = 1024 * 1024


def user_folder() -> pathlib.Path:
    """Where the library looks for the models of this user."""
    data, home = pathlib.Path(_library.variable("XDG_DATA_HOME")), pathlib.Path(_library.variable("HOME"))
    if not data.is_absolute():  # which the XDG specification says to ignore
        data = home / ".local" / "share"
    if not data.is_absolute():
        raise usage_error("there is no place for the models of this user: neither XDG_DATA_HOME nor HOME is an absolute path; set one")
    return data / "tilewise" / "models"


def read_facts(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model.json says."""
    path = pathlib.Path(folder) / FACTS
    if not path.is_file():
        raise usage_error(f"{folder}: no folder of a model: it has no {FACTS}; tilewise train --out_dir writes such folders")
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(facts, dict) or "op" not in facts:
            raise ValueError("it does not say which operation the model is of")
        return facts
    except ValueError as error:
        raise usage_error(f"{path}: {error}; train the model anew") from None


def trees_hash_of(trees: str) -> str:
    return hashlib.sha256(trees.encode()).hexdigest()[:16]


def trees_hash(folder: str | os.PathLike[str]) -> str:
    """What tells a model from others."""
    return trees_hash_of((pathlib.Path(folder) / TREES).read_text(encoding="utf-8"))


def today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def write(folder: str | os.PathLike[str], trees: str, facts: dict[str, Any]) -> None:
    """Writes a model, whole or not at all, in the place of an older one."""
    if len(trees.encode()) > MOST_BYTES:
        raise usage_error(f"{folder}: a model of {len(trees.encode())} bytes; at most {MOST_BYTES} are read; ask for fewer trees or leaves")
    place = pathlib.Path(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        (made / TREES).write_text(trees, encoding="utf-8")
        (made / FACTS).write_text(json.dumps({"format": FORMAT, **facts}, indent=1) + "\n", encoding="utf-8")
        made.chmod(0o755)
        _put(made, place)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _put(made: pathlib.Path, place: pathlib.Path) -> None:
    """A folder in the place of another: one rename each, since a folder that is not empty cannot be replaced."""
    old = made.with_name(f"{made.name}.old")
    if place.exists():
        place.rename(old)
    try:
        made.rename(place)
    except OSError:
        if old.exists():
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def install(folder: str | os.PathLike[str]) -> pathlib.Path:
    """Copies a model to where the library looks for those of this user."""
    source = pathlib.Path(folder)
    place = user_folder() / source.name
    write(place, (source / TREES).read_text(encoding="utf-8"), read_facts(source))
    return place
