# SPDX-License-Identifier: MIT
"""Trees by LightGBM, for several objectives. A prediction is a logarithm of microseconds.

    residual    log(measured / analytic), rows weighted towards kernels near the best
    mixed       that, with a share of LambdaRank
    rank        LambdaRank alone, on the analytic time times what the trees say
    log_time    the time itself
    log_tflops  log(1 + TFLOPS), every row alike: the original's recipe

The library can use the first three.
"""
from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .table import Table

MOST_TREES, MOST_LEAVES = 128, 31
OBJECTIVES = ("residual", "mixed", "rank", "log_time", "log_tflops")
OF_LIBRARY = ("residual", "mixed", "rank")
THREADS = 1          # another number sums up in another order, and idle threads that spin cost more than they give
PATIENCE = 30        # trees that may pass without a gain
SOFTNESS = 0.03      # of the choice, in the score that says when to stop
RANKED_ROWS = 48     # of a problem, in LambdaRank


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What may be searched for. `width` and `floor` shape the weights, exp(-(t / best - 1) / width) and no less than floor, where t is the
    measured time or, with `feared`, the analytic one if that is less: what is slow, but taken for fast, has to be learned too."""

    objective: str = "residual"
    learning_rate: float = 0.1
    leaves: int = MOST_LEAVES
    trees: int = MOST_TREES
    least_rows: int = 20       # of a leaf
    l2: float = 1.0
    columns: float = 0.7       # share of the features that a tree may use
    width: float = 0.15
    floor: float = 0.02
    feared: bool = True
    rank_share: float = 0.5    # of mixed
    rank_scale: float = 0.1    # log times that differ by so much are told apart


@dataclasses.dataclass(frozen=True)
class Examples:
    """A table with the library's features and analytic times of its rows. Trees do not see kernels that run a problem padded: these have no
    analytic time here, and are predicted by `padded_us`, what the analytic model says of them."""

    table: Table
    features: np.ndarray
    names: list[str]
    categorical: list[str]
    analytic_us: np.ndarray
    padded_us: np.ndarray

    def part(self, problems: np.ndarray) -> Examples:
        rows = problems[self.table.of]
        return dataclasses.replace(self, table=self.table.part(problems), features=self.features[rows], analytic_us=self.analytic_us[rows],
                                   padded_us=self.padded_us[rows])

    def by_analytic_model(self) -> np.ndarray:
        """Microseconds of every candidate; NaN for what is none."""
        return np.where(np.isfinite(self.analytic_us), self.analytic_us, self.padded_us)

    def usable(self) -> np.ndarray:
        """Rows that can be learned from."""
        return np.isfinite(self.table.time) & np.isfinite(self.analytic_us)


# ---- targets -------------------------------------------------------------------------------------------------------


def _flops(table: Table) -> np.ndarray:
    return np.array([problem.flops for problem in table.problems])[table.of]


def target(examples: Examples, objective: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        if objective == "log_time":
            return np.log(examples.table.time)
        if objective == "log_tflops":
            return np.log1p(_flops(examples.table) / examples.table.time / 1e6)
        return np.log(examples.table.time / examples.analytic_us)


def log_time(examples: Examples, objective: str, output: np.ndarray) -> np.ndarray:
    """What trees say, as the logarithm of microseconds."""
    if objective == "log_time":
        return output
    if objective == "log_tflops":
        return np.log(_flops(examples.table) / 1e6 / np.maximum(np.expm1(output), 1e-9))
    return np.log(examples.analytic_us) + output


def weights(examples: Examples, parameters: Parameters) -> np.ndarray:
    if parameters.objective == "log_tflops":
        return np.ones(len(examples.table))
    worse = examples.table.times_worse()
    if parameters.feared:
        starts = examples.table.starts[:-1]
        least = np.fmin.reduceat(examples.analytic_us, starts)[examples.table.of]
        worse = np.fmin(worse, examples.analytic_us / least)
    return np.maximum(np.exp(-(np.nan_to_num(worse, nan=1e3) - 1) / parameters.width), parameters.floor)


# ---- ranking -------------------------------------------------------------------------------------------------------


class PairwiseGradient:
    """LambdaRank, with what a swap would cost in efficiency as the gain. Rows of a problem lie in one row of a rectangle."""

    def __init__(self, of: np.ndarray, time: np.ndarray, base: np.ndarray, scale: float):
        self.base, self.scale = base, scale
        starts = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
        ends = np.r_[starts[1:], len(of)]
        width = min(RANKED_ROWS, int((ends - starts).max()))
        self.rows = np.zeros((len(starts), width), int)
        self.there = np.zeros((len(starts), width), bool)
        for i, (first, end) in enumerate(zip(starts, ends)):
            # Where there are too many: those that are fast, or that would be taken for it.
            likely = np.minimum(time[first:end] / time[first:end].min(), np.exp(base[first:end] - base[first:end].min()))
            chosen = first + np.sort(np.argsort(likely, kind="stable")[:width])
            self.rows[i, :len(chosen)], self.there[i, :len(chosen)] = chosen, True
        t = np.where(self.there, time[self.rows], np.inf)
        self.efficiency = t.min(axis=1, keepdims=True) / t
        better = self.efficiency[:, :, None] > self.efficiency[:, None, :]
        self.pairs = np.where(better & self.there[:, :, None] & self.there[:, None, :],
                              self.efficiency[:, :, None] - self.efficiency[:, None, :], 0.0).astype(np.float32)

    def __call__(self, output: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian for each row."""
        predicted = np.where(self.there, (self.base + output)[self.rows] / self.scale, np.inf).astype(np.float32)
        rank = predicted.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        discount = (1 / np.log2(2.0 + rank)).astype(np.float32)
        predicted[~self.there] = 0
        weight = self.pairs * np.abs(discount[:, :, None] - discount[:, None, :])
        # The chance that the better of two is taken for the worse.
        wrong = 1 / (1 + np.exp(np.clip(predicted[:, None, :] - predicted[:, :, None], -30, 30)))
        force, stiff = weight * wrong, weight * wrong * (1 - wrong)
        gradient, hessian = np.zeros(len(self.base)), np.zeros(len(self.base))
        gradient[self.rows[self.there]] = ((force.sum(axis=2) - force.sum(axis=1)) / self.scale)[self.there]
        hessian[self.rows[self.there]] = ((stiff.sum(axis=2) + stiff.sum(axis=1)) / self.scale**2)[self.there]
        return gradient, hessian + 1e-9


def _objective(parameters: Parameters, of: np.ndarray, time: np.ndarray, base: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Any:
    if parameters.objective not in ("mixed", "rank"):
        return "regression"
    pairwise = PairwiseGradient(of, time, base, parameters.rank_scale)
    share = parameters.rank_share if parameters.objective == "mixed" else 1.0

    def gradient(output: np.ndarray, _data: Any) -> tuple[np.ndarray, np.ndarray]:
        first, second = pairwise(output)
        scale = share * weight.sum() / second.sum()  # as stiff as the weights, so that a share is one
        return (1 - share) * weight * (output - y) + scale * first, (1 - share) * weight + scale * second

    return gradient


# ---- fitting -------------------------------------------------------------------------------------------------------


def expected_loss(of: np.ndarray, time: np.ndarray, predicted: np.ndarray) -> float:
    """The mean loss of a choice that wavers between kernels that are predicted nearly alike. Smooth, unlike that of the first."""
    starts = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
    number = np.cumsum(np.r_[False, of[1:] != of[:-1]])
    least = np.minimum.reduceat(predicted, starts)[number]
    chance = np.exp(-(predicted - least) / SOFTNESS)
    loss = 1 - np.minimum.reduceat(time, starts)[number] / time
    return float((np.add.reduceat(chance * loss, starts) / np.add.reduceat(chance, starts)).mean())


def lightgbm_parameters(parameters: Parameters, objective: Any) -> dict[str, Any]:
    return {"objective": objective, "metric": "none", "learning_rate": parameters.learning_rate, "num_leaves": parameters.leaves,
            "min_data_in_leaf": parameters.least_rows, "min_sum_hessian_in_leaf": 1e-3, "lambda_l2": parameters.l2,
            "feature_fraction": parameters.columns, "max_bin": 255, "seed": 1, "deterministic": True, "force_row_wise": True,
            "num_threads": THREADS, "verbosity": -1}


def fit(examples: Examples, parameters: Parameters, stop: Examples | None = None, begin_with: Any = None) -> Any:
    """A booster; fewer trees than asked for where the examples to stop by say so. `begin_with`: a model that it goes on from."""
    import lightgbm

    known = examples.usable()
    x, table = examples.features[known], examples.table
    y, weight = target(examples, parameters.objective)[known], weights(examples, parameters)[known]
    base = np.log(examples.analytic_us[known])
    data = lightgbm.Dataset(x, y, weight=weight, feature_name=examples.names, categorical_feature=examples.categorical, free_raw_data=False)
    options = lightgbm_parameters(parameters, _objective(parameters, table.of[known], table.time[known], base, y, weight))
    watched: dict[str, Any] = {}
    if stop is not None:
        watched = _watch(stop, parameters.objective, data)
    with warnings.catch_warnings():  # that columns are taken as they are
        warnings.simplefilter("ignore")
        return lightgbm.train(options, data, parameters.trees, init_model=begin_with, **watched)


def _watch(stop: Examples, objective: str, data: Any) -> dict[str, Any]:
    import lightgbm

    known = stop.usable()
    of, time = stop.table.of[known], stop.table.time[known]
    base = dataclasses.replace(stop, table=_rows_of(stop.table, known), features=stop.features[known], analytic_us=stop.analytic_us[known],
                               padded_us=stop.padded_us[known])

    def loss(output: np.ndarray, _data: Any) -> tuple[str, float, bool]:
        return "loss", expected_loss(of, time, log_time(base, objective, output)), False

    return {"valid_sets": [lightgbm.Dataset(base.features, np.zeros(len(of)), reference=data, free_raw_data=False)], "feval": loss,
            "callbacks": [lightgbm.early_stopping(PATIENCE, verbose=False)]}


def _rows_of(table: Table, rows: np.ndarray) -> Table:
    return dataclasses.replace(table, of=table.of[rows], kernels=table.kernels[rows], kinds=table.kinds[rows], time=table.time[rows],
                               time2=table.time2[rows])


def predict(booster: Any, examples: Examples, objective: str) -> np.ndarray:
    """Logarithms of microseconds; NaN for what is no candidate."""
    found: np.ndarray = log_time(examples, objective, booster.predict(examples.features, num_threads=THREADS))
    return np.where(np.isfinite(examples.analytic_us), found, np.log(examples.padded_us))


Progress = Callable[[str], None]
