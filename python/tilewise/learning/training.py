# SPDX-License-Identifier: MIT
"""A model from examples: judged on folds of shapes that it has not seen, then fitted on all, with what the library has to know of it."""
from __future__ import annotations

import dataclasses
import functools
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _library
from . import scores as scoring
from .baselines import by_analytic_model
from .features import MODEL_OPS, FeatureEngine, kind_of
from .fit import OF_LIBRARY, Examples, Parameters, fit, predict, target, weights
from .folds import folds
from .model_folder import today

# Types whose kernels behave alike on a GPU, and share a model, which is named after the first. A CPU has other instructions for each.
TYPE_CLASSES = (("bf16", "fp16"), ("fp8", "bf8"), ("int8",), ("fp32",))

Fit = Callable[..., Any]
Say = Callable[[str], None]


def types_like(dtype: str, arch: str) -> tuple[str, ...]:
    """The types that share a model with one."""
    return (dtype,) if _is_cpu(arch) else next((types for types in TYPE_CLASSES if dtype in types), (dtype,))


@functools.cache
def _is_cpu(arch: str) -> bool:
    return bool(_library.call("tilewise_archs", arch)["archs"][0]["backend"] == "cpu")


def folder_name(op: str, dtype: str, arch: str) -> str:
    return f"{MODEL_OPS[op]}_{dtype}_{arch}"


@dataclasses.dataclass(frozen=True)
class OnFolds:
    """What came out of folds: `log_us` are the predictions of models that had not seen the shape, or one near it."""

    parameters: Parameters
    log_us: np.ndarray
    trees: list[int]           # at which each fold stopped
    kept: list[int]            # problems that each fold learned from
    judged: scoring.Judged

    @property
    def mean(self) -> float:
        return float(self.judged.efficiency.mean())


def on_folds(examples: Examples, parameters: Parameters, splits: int) -> OnFolds:
    log_us = np.full(len(examples.table), np.nan)
    trees, kept = [], []
    for fold in folds(examples.table.problems, splits):
        if fold.stop.any():
            first = fit(examples.part(fold.train), parameters, examples.part(fold.stop))
            trees.append(first.best_iteration or first.num_trees())
        else:
            trees.append(parameters.trees)
        booster = fit(examples.part(fold.left), dataclasses.replace(parameters, trees=trees[-1]))
        log_us[fold.judge[examples.table.of]] = predict(booster, examples.part(fold.judge), parameters.objective)
        kept.append(int(fold.left.sum()))
    return OnFolds(parameters, log_us, trees, kept, scoring.judge(examples.table, scoring.ranking_by(examples.table, log_us)))


def compared(examples: Examples, objectives: Sequence[str], parameters: Parameters, splits: int) -> list[OnFolds]:
    """The objectives on the same folds."""
    return [on_folds(examples, dataclasses.replace(parameters, objective=one), splits) for one in objectives]


def best_of(tried: Sequence[OnFolds]) -> OnFolds:
    """The one with the least regret that the library can use."""
    return max((one for one in tried if one.parameters.objective in OF_LIBRARY), key=lambda one: one.mean)


def searched(examples: Examples, first: OnFolds, splits: int, seconds: float, say: Say) -> OnFolds:
    """The best of parameters that are drawn at random until the time is up."""
    draw, end, best = random.Random(1), time.monotonic() + seconds, first
    while time.monotonic() < end:
        parameters = dataclasses.replace(
            first.parameters, learning_rate=draw.choice((0.05, 0.08, 0.12, 0.2)), least_rows=draw.choice((10, 20, 40, 80)),
            l2=draw.choice((0.1, 1.0, 10.0)), columns=draw.choice((0.5, 0.7, 1.0)), width=draw.choice((0.1, 0.15, 0.3)),
            floor=draw.choice((0.0, 0.02, 0.1)), rank_share=draw.choice((0.2, 0.5, 0.8)), rank_scale=draw.choice((0.05, 0.1, 0.2)))
        tried = on_folds(examples, parameters, splits)
        if tried.mean > best.mean:
            best = tried
            say(f"  {100 * best.mean:.2f} % by {best.parameters}")
    return best


# ---- the model -----------------------------------------------------------------------------------------------------


def final_trees(chosen: OnFolds) -> int:
    """As many as the folds needed, and some more for there are more examples."""
    return min(chosen.parameters.trees, max(1, round(1.1 * float(np.mean(chosen.trees)))))


def kinds_of(examples: Examples, chosen: OnFolds) -> dict[str, dict[str, Any]]:
    """Of each kind of kernel the rows, and the root mean square of what the folds predicted wrongly, near the best."""
    known = examples.usable() & np.isfinite(chosen.log_us)
    kinds = np.array([kind_of(str(name)) for name in examples.table.kernels[known]])
    error = np.log(examples.table.time[known]) - chosen.log_us[known]
    weight = np.maximum(weights(examples, Parameters())[known], 1e-6)
    return {str(kind): {"rows": int((kinds == kind).sum()),
                        "error": round(float(np.sqrt(np.average(error[kinds == kind]**2, weights=weight[kinds == kind]))), 4)}
            for kind in np.unique(kinds)}


def scores_of(examples: Examples, log_us: np.ndarray) -> dict[str, Any]:
    """Of a prediction, with the analytic model's beside it."""
    table = examples.table
    own = scoring.judge(table, scoring.ranking_by(table, log_us))
    analytic = scoring.judge(table, by_analytic_model(table, examples.by_analytic_model()))
    return {**scoring.figures(own), "accuracy": scoring.accuracy(table, np.exp(log_us)),
            "analytic": {**scoring.figures(analytic), "accuracy": scoring.accuracy(table, examples.by_analytic_model())}}


def model_facts(examples: Examples, chosen: OnFolds, engine: FeatureEngine, dtypes: Sequence[str], trees: int) -> dict[str, Any]:
    """What a model.json says."""
    known = examples.usable()
    table, x = examples.table, examples.features[known]
    weight = weights(examples, chosen.parameters)[known]
    ranges = {name: x[:, examples.names.index(name)] for name in engine.ranged}
    facts = table.facts
    return {"op": engine.op, "arch": facts["arch"], "chip": facts["chip"], "dtypes": list(dtypes), "features": {"schema": engine.schema, "hash": engine.hash},
            "target": "log_ratio", "mean": round(float(np.average(target(examples, "residual")[known], weights=weight)), 6),
            "ranges": {name: [round(float(values.min()), 4), round(float(values.max()), 4)] for name, values in ranges.items()},
            "kinds": kinds_of(examples, chosen), "version": 1, "date": today(), "device": ", ".join(facts["devices"]),
            "driver": ", ".join(facts["drivers"]), "data": facts["data_hash"], "set": ", ".join(facts["sets"]), "rows": int(known.sum()),
            "shapes": len(table.problems), "parameters": dataclasses.asdict(chosen.parameters), "trees": trees,
            "folds": {"by": "neighbours within twice in every dimension", "splits": len(chosen.trees), "trees": chosen.trees,
                      "learned_from": chosen.kept}, "scores": scores_of(examples, chosen.log_us)}


def trees_text(booster: Any) -> str:
    """LightGBM's text. Trees of an objective of our own are those of a regression to whoever reads them."""
    text: str = booster.model_to_string()
    head, _, rest = text.partition("\nfeature_names=")
    return text if "\nobjective=" in head else f"{head}\nobjective=regression\nfeature_names={rest}"


def final(examples: Examples, chosen: OnFolds, begin_with: Any = None, fit_by: Fit = fit) -> tuple[Any, int]:
    """The model of all examples, and its number of trees."""
    trees = final_trees(chosen)
    return fit_by(examples, dataclasses.replace(chosen.parameters, trees=trees), begin_with=begin_with), trees


# ---- what else there is to know ------------------------------------------------------------------------------------


def without_each(examples: Examples, parameters: Parameters, labels: np.ndarray, least: int = 20) -> dict[str, float]:
    """For each label of problems, the mean efficiency on these of a model that has learned from the others."""
    found = {}
    for label in sorted(set(labels)):
        own = labels == label
        if own.sum() < least or own.all():
            continue
        part = examples.part(own)
        log_us = predict(fit(examples.part(~own), parameters), part, parameters.objective)
        judged = scoring.judge(part.table, scoring.ranking_by(part.table, log_us))
        found[str(label)] = round(100 * float(judged.efficiency.mean()), 2)
    return found


def without_each_kind(examples: Examples, parameters: Parameters, splits: int, least: int = 200) -> dict[str, float]:
    """For each family of kernels with so many rows, the mean efficiency on folds where nothing was learned of it: as the library does, its
    kernels get the analytic time and the mean correction."""
    found = {}
    known = examples.usable()
    mean = np.average(target(examples, parameters.objective)[known], weights=weights(examples, parameters)[known])
    for kind in sorted(set(examples.table.kinds)):
        if (examples.table.kinds == kind).sum() < least:
            continue
        hidden = np.where(examples.table.kinds == kind, np.nan, examples.table.time)
        log_us = np.full(len(hidden), np.nan)
        blind = dataclasses.replace(examples, table=dataclasses.replace(examples.table, time=hidden))
        for fold in folds(examples.table.problems, splits):
            booster = fit(blind.part(fold.left), parameters)
            log_us[fold.judge[examples.table.of]] = predict(booster, examples.part(fold.judge), parameters.objective)
        log_us = np.where(examples.table.kinds == kind, np.log(examples.analytic_us) + mean, log_us)
        judged = scoring.judge(examples.table, scoring.ranking_by(examples.table, log_us))
        found[str(kind)] = round(100 * float(judged.efficiency.mean()), 2)
    return found
