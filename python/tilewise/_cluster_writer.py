# SPDX-License-Identifier: MIT
"""The one writer of a cluster's records: those of a problem are appended at once, so that a problem is in the file or not."""
from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence

from ._files import new_file, read_text, whole_records
from ._verbs import usage_error

Cells = list[str]
_SAME = ("schema", "set", "device")  # in all records of a file
_BEGIN = "schema,"  # of a file


def _text(rows: Sequence[Cells]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(rows)
    return made.getvalue()


class Writer:
    """done    the problems that the file had, by their texts
    count   how many records were added
    fixed   cells that a worker, which sees one problem, cannot know, by column"""

    def __init__(self, path: str, resume: bool, fixed: Mapping[str, str] | None = None):
        self.path, self.count, self._fixed = path, 0, fixed or {}
        self.done: set[str] = set()
        self._header: Cells = []
        self._same: dict[str, str] = {}
        if resume and os.path.exists(path):
            self._take_up()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def _take_up(self) -> None:
        """Goes on with what is there. The problem that was written last may not be whole: it is taken away, and done again."""
        text = read_text(self.path)
        rows = list(csv.reader(io.StringIO(whole_records(text), newline="")))
        if not rows and text[:len(_BEGIN)] == _BEGIN[:len(text)]:  # nothing, or a header that was being written
            return os.truncate(self.path, 0)
        self._header = rows[0] if rows else []
        if "problem" not in self._header:
            raise usage_error(f"--out {self.path}: it is no file of records; name another")
        at = self._header.index("problem")
        kept = [row for row in rows[1:] if len(row) == len(self._header)]
        if kept:
            self._same = self._facts(kept[0])
            for name, need in self._fixed.items():
                if self._same.get(name, need) != need:
                    raise usage_error(f"--out {self.path}: its records are of {name} {self._same[name]}, these would be of {need}; "
                                      "name another file")
        last = kept[-1][at] if kept else ""
        kept = [row for row in kept if row[at] != last]
        self.done = {row[at] for row in kept}
        with new_file(self.path) as part:
            part.write_text(_text([self._header, *kept]), encoding="utf-8", newline="")

    def _facts(self, row: Cells) -> dict[str, str]:
        return {name: row[self._header.index(name)] for name in _SAME if name in self._header}

    def _append(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._fd, data):]

    def add(self, header: Cells, rows: Sequence[Cells]) -> None:
        """Appends the records of a problem."""
        if not rows:
            return
        text = ""
        if not self._header:
            self._header, text = header, _text([header])
        if header != self._header:
            raise usage_error(f"--out {self.path}: records with the columns {', '.join(header)} came; those there have "
                              f"{', '.join(self._header)}: the workers, or the file, are of another version")
        rows = [[self._fixed.get(name, cell) for name, cell in zip(header, row)] for row in rows]
        for row in rows:
            facts = self._facts(row)
            self._same = self._same or facts
            for name, have in facts.items():
                if have != self._same[name]:
                    raise usage_error(f"--out {self.path}: records of {name} '{have}' came; those there are of '{self._same[name]}': "
                                      "sweep devices of one kind, or name another file")
        self._append(text + _text(rows))
        self.count += len(rows)

    def close(self) -> None:
        os.close(self._fd)
