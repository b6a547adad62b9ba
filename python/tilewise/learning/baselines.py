# SPDX-License-Identifier: MIT
"""What a choice costs that learns nothing, on the same kernels: what a learned choice has to beat."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..api import kernels
from ..problem_sets import dimensions
from .scores import Ranking, ranking_by, second_time
from .table import Table


def by_analytic_model(table: Table, analytic_us: np.ndarray) -> Ranking:
    return ranking_by(table, analytic_us)


def _by_order(table: Table, names: Sequence[str]) -> Ranking:
    place = {name: float(i) for i, name in enumerate(names)}
    return ranking_by(table, np.array([place.get(name, np.nan) for name in table.kernels]))


def by_first_fit(table: Table) -> Ranking:
    """In the order in which a rule set lists its kernels."""
    arch = str(table.facts["arch"])
    names = [kernel.name for rule_set in ("default", "full") for op in sorted({str(p.op) for p in table.problems})
             for kernel in kernels(op=op, arch=arch, rule_set=rule_set)]
    return _by_order(table, list(dict.fromkeys(names)))


def by_best_single(table: Table, known: Table) -> Ranking:
    """One fixed order: kernels by the sum of their efficiencies on known problems, so that the best one is taken wherever it may run."""
    time, best = second_time(known), known.best()
    sums: dict[str, float] = {}
    for rows, least in zip(known.rows(), best):
        if least >= 0:
            for name, us in zip(known.kernels[rows], time[rows]):
                sums[name] = sums.get(name, 0.0) + (float(time[least] / us) if np.isfinite(us) else 0.0)
    return _by_order(table, sorted(sums, key=lambda name: (-sums[name], name)))


def by_nearest(table: Table, known: Table) -> Ranking:
    """As on the nearest known shape of the same layout, in order of its times."""
    def place(problem) -> tuple[str, np.ndarray]:  # type: ignore[no-untyped-def]
        shape = np.log2(np.maximum(1, dimensions(problem.fields)))
        return f"{len(shape)} {problem.fields.get('layout')}", shape

    shapes: dict[str, list[tuple[np.ndarray, slice]]] = {}
    for problem, rows, least in zip(known.problems, known.rows(), known.best()):
        if least >= 0:
            key, shape = place(problem)
            shapes.setdefault(key, []).append((shape, rows))
    ranked = np.full(len(table), np.nan)
    for problem, rows in zip(table.problems, table.rows()):
        key, shape = place(problem)
        if key in shapes:
            near = min(shapes[key], key=lambda other: float(np.abs(other[0] - shape).sum()))[1]
            times = dict(zip(known.kernels[near], known.time[near]))
            ranked[rows] = [times.get(name, np.nan) for name in table.kernels[rows]]
    return ranking_by(table, ranked)
