# SPDX-License-Identifier: MIT
"""What the library chooses for the problems of a table, by its strategies: the ranking that users get, of the whole pool."""
from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _library
from .features import FeatureEngine
from .fit import Examples
from .scores import Ranking, ranking_of_names
from .table import Table


@dataclasses.dataclass(frozen=True)
class Choice:
    """Of each problem the ranking; of each row of the table the predicted time, NaN where it is no candidate."""

    ranking: Ranking
    predicted_us: np.ndarray
    pools: list[int]
    models: list[dict[str, Any]]  # that made the choices, each once


def choose(problem: str, *, arch: str | None, rule_set: str | None = None, model_dir: str | os.PathLike[str] | None = None,
           strategy: str = "model", threads: int | None = None) -> dict[str, Any]:
    """The library's answer: {"plan", "candidates", "rejected"}."""
    options = {"strategy": strategy, "arch": arch, "rule_set": rule_set, "model_dir": model_dir and os.fspath(model_dir), "threads": threads}
    found: dict[str, Any] = _library.call("tilewise_select", problem, json.dumps({name: one for name, one in options.items() if one}))
    return found


def choice_of(table: Table, **options: Any) -> Choice:
    """By the learned model, or by another strategy."""
    names: list[Sequence[str]] = []
    predicted = np.full(len(table), np.nan)
    pools: list[int] = []
    models: dict[str, dict[str, Any]] = {}
    for problem, rows in zip(table.problems, table.rows()):
        answer = choose(problem.text, arch=table.facts["arch"], **options)
        candidates = answer["candidates"]
        times = {one["name"]: one.get("predicted_us") for one in candidates}
        predicted[rows] = [times.get(str(name)) or np.nan for name in table.kernels[rows]]
        names.append([one["name"] for one in candidates])
        pools.append(len(candidates))
        model = (answer["plan"] or {}).get("model")
        if model and model.get("name"):
            models[model["name"]] = model
    return Choice(ranking_of_names(table, names), predicted, pools, list(models.values()))


def examples_of(table: Table, threads: int | None = None) -> Examples:
    """Features and analytic times of a table's rows; of kernels that run a problem padded what the analytic model says of that."""
    engine = FeatureEngine(table.facts["op"], table.facts["arch"], threads)
    x, analytic_us, padded_us = np.empty((len(table), len(engine.names))), np.empty(len(table)), np.full(len(table), np.nan)
    for problem, rows in zip(table.problems, table.rows()):
        x[rows], analytic_us[rows] = engine.rows(problem, list(table.kernels[rows]))
        if np.isnan(analytic_us[rows]).any():
            candidates = choose(problem.text, arch=table.facts["arch"], strategy="rules", threads=threads)["candidates"]
            padded = {one["name"]: one.get("predicted_us") for one in candidates if one.get("padded")}
            padded_us[rows] = [padded.get(str(name)) or np.nan for name in table.kernels[rows]]
    return Examples(table, x, engine.names, engine.categorical, analytic_us, padded_us)
