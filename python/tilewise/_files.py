# SPDX-License-Identifier: MIT
"""Files as the commands read and write them."""
from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator

from ._verbs import usage_error


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file, line breaks as they are."""
    try:
        return pathlib.Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise usage_error(f"{path}: byte {error.start} is no part of a text in UTF-8; need a text file") from None


def whole_records(text: str) -> str:
    """A table of records without a last one that has no end: it was being written when its writer was killed."""
    end = text.rfind("\n") + 1
    quoted = text.count('"', 0, end) % 2  # a cell may have line breaks within quotes
    while quoted:
        begin = text.rfind("\n", 0, end - 1) + 1
        quoted ^= text.count('"', begin, end) % 2
        end = begin
    return text[:end]


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """An empty file for what is to be at `path`, beside it and under a name that nobody can foresee. At the end it takes the place of
    what is there, in one step; an error leaves that as it was."""
    place = pathlib.Path(path)
    if place.is_symlink() or (place.exists() and not place.is_file()):
        raise usage_error(f"{path}: it is no plain file, which alone is replaced; name another")
    part = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    try:
        yield part
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
