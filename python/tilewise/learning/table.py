# SPDX-License-Identifier: MIT
"""Records as arrays: measurements of kernels on problems, the rows of a problem together."""
from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .. import records
from .._verbs import usage_error
from ..problem import Problem
from ..problem_sets import USES

_COLUMNS = ("problem", "kernel_name", "status", "time_us")


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows are sorted by problem and kernel. `time` is NaN where a kernel failed, `time2` where it was not timed again."""

    problems: list[Problem]
    networks: list[str]      # of each problem
    of: np.ndarray           # the problem of each row
    starts: np.ndarray       # the first row of each problem, and the end
    kernels: np.ndarray      # names
    kinds: np.ndarray        # families
    time: np.ndarray
    time2: np.ndarray
    facts: dict[str, Any]    # device, driver, arch, sets and the hash of what was measured

    def __len__(self) -> int:
        return len(self.kernels)

    def rows(self) -> Iterator[slice]:
        """Of each problem."""
        for first, end in zip(self.starts[:-1], self.starts[1:]):
            yield slice(int(first), int(end))

    def texts(self) -> list[str]:
        return [problem.text for problem in self.problems]

    def best(self) -> np.ndarray:
        """The row of each problem's least first time; -1 where every kernel failed."""
        found = np.full(len(self.problems), -1)
        for index, rows in enumerate(self.rows()):
            if np.isfinite(self.time[rows]).any():
                found[index] = rows.start + int(np.nanargmin(self.time[rows]))
        return found

    def times_worse(self) -> np.ndarray:
        """How many times as long as its problem's best each row takes; NaN where it failed."""
        best = self.best()
        least = np.where(best >= 0, self.time[best], np.nan)
        return self.time / least[self.of]

    def part(self, problems: np.ndarray) -> Table:
        """The rows of the problems that are true in `problems`."""
        number = np.cumsum(problems) - 1
        rows = problems[self.of]
        of = number[self.of[rows]]
        pick = np.flatnonzero(problems)
        return dataclasses.replace(
            self, problems=[self.problems[i] for i in pick], networks=[self.networks[i] for i in pick], of=of,
            starts=np.searchsorted(of, np.arange(len(pick) + 1)), kernels=self.kernels[rows], kinds=self.kinds[rows],
            time=self.time[rows], time2=self.time2[rows])


def use_of(name: str) -> str:
    """What records of a problem set, NAME@HASH, are for: validation and test sets judge models, from all others may be learned."""
    use = str(name).partition("@")[0].rpartition("_")[2]
    return use if use in USES else "training"


def _check_times(frame: pd.DataFrame) -> None:
    ok = frame["status"] == "ok"
    wrong = ok & ~(np.isfinite(frame["time_us"]) & (frame["time_us"] > 0))
    if wrong.any():
        row = frame[wrong].iloc[0]
        raise usage_error(f"column time_us is {row['time_us']} where the status is ok, of {row['kernel_name']} on {row['problem']} and "
                          f"{int(wrong.sum()) - 1} other records; need a number above 0; measure them again, or leave them out")


def _of_operation(frame: pd.DataFrame, op: str | None, dtypes: Sequence[str] | None, arch: str | None) -> pd.DataFrame:
    for column, wanted in (("problem_op", [op] if op else None), ("problem_dtype", dtypes), ("kernel_arch", [arch] if arch else None)):
        if wanted is None:
            continue
        there = sorted(frame[column].astype(str).unique())
        frame = frame[frame[column].astype(str).isin(list(wanted))]
        if frame.empty:
            raise usage_error(f"no records with {column.partition('_')[2]} {' or '.join(wanted)}; there are records with {', '.join(there)}")
    return frame


def data_hash(frame: pd.DataFrame) -> str:
    """Of what was measured: problems, kernels and times."""
    digest = hashlib.sha256()
    for values in frame[list(_COLUMNS)].sort_values(["problem", "kernel_name"], kind="stable").itertuples(index=False):
        digest.update("\t".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in values).encode() + b"\n")
    return digest.hexdigest()[:16]


def _facts(frame: pd.DataFrame) -> dict[str, Any]:
    def all_of(name: str) -> list[str]:
        return sorted(map(str, frame[name].dropna().unique())) if name in frame.columns else []

    return {"devices": all_of("device"), "chip": ", ".join(all_of("chip")), "drivers": all_of("driver"), "arch": ", ".join(all_of("kernel_arch")),
            "op": ", ".join(all_of("problem_op")), "dtypes": all_of("problem_dtype"), "sets": all_of("set"), "data_hash": data_hash(frame)}


def table_from(frame: pd.DataFrame, *, op: str | None = None, dtypes: Sequence[str] | None = None, arch: str | None = None) -> Table:
    """Of records as tilewise.records.read gives them; only those of an operation, of types and of an arch where these are given."""
    frame = _of_operation(frame, op, dtypes, arch)
    _check_times(frame)
    frame = frame[frame["status"] != "skipped"].sort_values(["problem", "kernel_name"], kind="stable")
    valid = (frame["status"] == "ok").to_numpy()
    if not valid.any():
        told = ", ".join(f"{count} {status}" for status, count in frame["status"].value_counts().items()) or "all were skipped"
        raise usage_error(f"no record has a time ({told}); nothing can be learned from failures alone, so measure again")
    of, texts = pd.factorize(frame["problem"])
    networks = frame["network"].fillna("").astype(str) if "network" in frame.columns else pd.Series("", frame.index)
    starts = np.searchsorted(of, np.arange(len(texts) + 1))
    time2 = frame["time2_us"] if "time2_us" in frame.columns else pd.Series(np.nan, frame.index)
    return Table([Problem(text) for text in texts], [networks.iloc[i] for i in starts[:-1]], of, starts,
                 frame["kernel_name"].to_numpy(str), frame["kernel_family"].astype(str).to_numpy(str),
                 np.where(valid, frame["time_us"].to_numpy(float), np.nan), np.where(valid, time2.to_numpy(float), np.nan), _facts(frame))


def read_table(paths: Sequence[Any], **only: Any) -> Table:
    """Of files of records, CSV or Parquet."""
    return table_from(records.read(*paths), **only)
