# SPDX-License-Identifier: MIT
"""How good a choice of kernels is, by measurements. The oracle is the kernel with the least first time; the efficiency of a choice is the
oracle's second time over that of the kernel chosen (its first, where it was not timed twice), at most 1. A kernel that failed, or was not
measured, counts 0.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .table import Table

MEASURED = (3, 8)      # of a ranking, where the best of so many is found by measuring
LEAST_NOISE = 0.001    # two times this near are the same
MOST_NOISE = 0.03      # what measuring again may differ by, in a sweep that is as it should be
GOOD = 0.9

# Rows of a table for each problem, best first; -1 stands for a kernel without a record.
Ranking = list[np.ndarray]


def ranking_by(table: Table, predicted: np.ndarray) -> Ranking:
    """By a number for each row, least first; NaN is no candidate."""
    found = []
    for rows in table.rows():
        order = np.argsort(predicted[rows], kind="stable")
        found.append(rows.start + order[np.isfinite(predicted[rows][order])])
    return found


def ranking_of_names(table: Table, names: Sequence[Sequence[str]]) -> Ranking:
    """By the names of kernels, of each problem."""
    found = []
    for rows, ranked in zip(table.rows(), names):
        place = {name: rows.start + i for i, name in enumerate(table.kernels[rows])}
        found.append(np.array([place.get(name, -1) for name in ranked], int))
    return found


def second_time(table: Table) -> np.ndarray:
    """The time that counts of a row that was chosen."""
    return np.where(np.isfinite(table.time2), table.time2, table.time)


def noise(table: Table) -> float:
    """The relative difference of two times of the same, which 95 % keep within; within bounds."""
    twice = np.isfinite(table.time2) & np.isfinite(table.time)
    if not twice.any():
        return MOST_NOISE
    return float(np.clip(np.quantile(np.abs(np.log(table.time2[twice] / table.time[twice])), 0.95), LEAST_NOISE, MOST_NOISE))


def _efficiency(time: np.ndarray, best: int, row: int) -> float:
    return 0.0 if row < 0 or not np.isfinite(time[row]) else min(1.0, float(time[best] / time[row]))


@dataclasses.dataclass(frozen=True)
class Judged:
    """What a ranking is worth on each problem that has a time."""

    table: Table
    problems: np.ndarray                 # which of the table's
    best: np.ndarray                     # the oracle's row
    picks: np.ndarray                    # the row chosen, or -1
    efficiency: np.ndarray
    after_measuring: dict[int, np.ndarray]  # of the first 3 and the first 8
    hits: dict[int, np.ndarray]          # whether the oracle is among those
    match: np.ndarray
    within_noise: np.ndarray
    pools: np.ndarray                    # sizes


def judge(table: Table, ranking: Ranking) -> Judged:
    best = table.best()
    time, least = second_time(table), noise(table)
    problems = np.flatnonzero(best >= 0)
    picks = np.array([int(ranking[p][0]) if len(ranking[p]) else -1 for p in problems], int)
    efficiency = np.array([_efficiency(time, best[p], pick) for p, pick in zip(problems, picks)])

    def best_of(p: int, count: int) -> float:
        measured = [row for row in ranking[p][:count] if row >= 0 and np.isfinite(table.time[row])]
        return _efficiency(time, best[p], min(measured, key=lambda row: table.time[row]) if measured else -1)

    sizes = np.array([rows.stop - rows.start for rows in table.rows()])
    return Judged(table, problems, best[problems], picks, efficiency,
                  {count: np.array([best_of(p, count) for p in problems]) for count in MEASURED},
                  {count: np.array([best[p] in ranking[p][:count] for p in problems]) for count in MEASURED},
                  picks == best[problems], efficiency >= 1 / (1 + least), sizes[problems])


def _percent(values: np.ndarray, of: Callable[[np.ndarray], Any] = np.mean) -> float:
    return round(100 * float(of(values)), 2) if len(values) else 0.0


def figures(judged: Judged) -> dict[str, Any]:
    """The scores of all problems, in percent."""
    e = judged.efficiency
    scores = {"problems": len(e), "mean": _percent(e), "median": _percent(e, np.median),
              **{f"p{q}": _percent(e, lambda values, q=q: np.quantile(values, q / 100)) for q in (10, 90, 1)}, "min": _percent(e, np.min),
              "match": _percent(judged.match), "match_within_noise": _percent(judged.within_noise)}
    for count in MEASURED:
        scores |= {f"top{count}": _percent(judged.after_measuring[count]), f"top{count}_hit": _percent(judged.hits[count])}
    scores |= {"below_90": _percent(e < GOOD), "pool": int(np.median(judged.pools)) if len(e) else 0,
               "noise": round(100 * noise(judged.table), 2), "ceiling": ceiling(judged.table)}
    return scores


def ceiling(table: Table) -> float:
    """What the first timing's best is worth by the second timing, in percent: how far noise alone leads astray."""
    found = []
    for rows, row in zip(table.rows(), table.best()):
        if row >= 0 and np.isfinite(table.time2[row]):
            found.append(np.nanmin(table.time2[rows]) / table.time2[row])
    return _percent(np.array(found)) if found else 100.0


def accuracy(table: Table, predicted_us: np.ndarray, rows: np.ndarray | None = None) -> float:
    """1 - the median relative error of predicted times, in percent; of some rows where they are given."""
    known = np.isfinite(table.time) & np.isfinite(predicted_us)
    if rows is not None:
        known &= np.isin(np.arange(len(table)), rows)
    error = np.abs(predicted_us[known] / table.time[known] - 1)
    return round(100 * (1 - float(np.median(error))), 2) if known.any() else 0.0


# ---- parts of it ---------------------------------------------------------------------------------------------------


def _size(flops: float) -> str:
    for name, most in (("below 0.1 GFLOP", 1e8), ("0.1 to 10 GFLOP", 1e10), ("10 to 1000 GFLOP", 1e12)):
        if flops < most:
            return name
    return "1000 GFLOP and more"


def _labels(judged: Judged) -> dict[str, list[str]]:
    table = judged.table
    return {"network": [table.networks[p] or "-" for p in judged.problems],
            "size": [_size(table.problems[p].flops) for p in judged.problems],
            "kind": [str(table.kinds[row]) for row in judged.best]}


def by_part(judged: Judged, other: Judged | None = None) -> dict[str, dict[str, dict[str, Any]]]:
    """By network, size and the oracle's kind: problems, mean, P10, and the mean of another ranking beside it."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, labels in _labels(judged).items():
        found[name] = {}
        for label in sorted(set(labels)):
            of = np.array([one == label for one in labels])
            e = judged.efficiency[of]
            found[name][label] = {"problems": int(of.sum()), "mean": _percent(e), "p10": _percent(e, lambda v: np.quantile(v, 0.1))}
            if other is not None:
                found[name][label]["analytic"] = _percent(other.efficiency[of])
    return found


def worse_families(parts: dict[str, dict[str, dict[str, Any]]], least: int = 20, points: float = 0.5) -> list[str]:
    """The networks with so many problems on which the analytic model is better by more than so much."""
    return [name for name, row in parts["network"].items() if row["problems"] >= least and row["mean"] < row["analytic"] - points]


def slowdowns(judged: Judged) -> dict[str, float]:
    """Of each network: the time of all its problems by the choice over that by the oracle. A failed choice counts 10 times."""
    time, networks = second_time(judged.table), _labels(judged)["network"]
    found = {}
    for name in sorted(set(networks)):
        of = np.array([one == name for one in networks])
        best = time[judged.best[of]]
        found[name] = round(float((best / np.maximum(judged.efficiency[of], 0.1)).sum() / best.sum()), 4)
    return found


def worst(judged: Judged, count: int = 10) -> list[dict[str, Any]]:
    """The problems whose choice is worth least."""
    return [{"problem": judged.table.problems[judged.problems[i]].text, "efficiency": _percent(judged.efficiency[i:i + 1]),
             "choice": str(judged.table.kernels[judged.picks[i]]) if judged.picks[i] >= 0 else None,
             "best": str(judged.table.kernels[judged.best[i]])} for i in np.argsort(judged.efficiency, kind="stable")[:count]]
