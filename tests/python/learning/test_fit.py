# SPDX-License-Identifier: MIT
"""Trees learn what the analytic model gets wrong, by each objective, and the same every time."""
import dataclasses
import random

import numpy as np
import pytest

import tilewise
from tilewise.learning import fit as fitting
from tilewise.learning.fit import OBJECTIVES, OF_LIBRARY, Examples, Parameters, expected_loss, fit, log_time, predict, target, weights
from tilewise.learning.scores import accuracy, judge, ranking_by
from tilewise.learning.table import Table

QUICK = Parameters(trees=30, least_rows=5, learning_rate=0.2)


def made(count=80, kernels=12, seed=1):
    """Kernels of a kind that takes twice as long as predicted, where k is small."""
    draw = random.Random(seed)
    problems, features, time, analytic = [], [], [], []
    for _ in range(count):
        k = round(2 ** draw.uniform(4, 12))
        problems.append(tilewise.Problem("gemm", m=64, n=64, k=k, dtype="bf16"))
        for i in range(kernels):
            analytic.append(draw.uniform(8, 16))
            time.append(analytic[-1] * (2 if i % 3 == 0 and k < 512 else 1) * draw.lognormvariate(0, 0.01))
            features.append([np.log2(k), i % 3, np.log2(analytic[-1])])
    of = np.repeat(np.arange(count), kernels)
    table = Table(problems, ["n"] * count, of, np.arange(count + 1) * kernels, np.array([f"k{i}" for i in range(kernels)] * count),
                  np.array(["a"] * len(of)), np.array(time), np.full(len(of), np.nan), {})
    return Examples(table, np.array(features), ["log2_k", "kind", "log2_analytic"], ["kind"], np.array(analytic), np.full(len(of), np.nan))


@pytest.fixture(scope="module")
def examples():
    return made()


def mean(examples, predicted):
    return judge(examples.table, ranking_by(examples.table, predicted)).efficiency.mean()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_objective_learns_what_the_analytic_model_does_not_know(examples, objective):
    parameters = dataclasses.replace(QUICK, objective=objective, trees=60)
    half = np.arange(80) % 2 == 0
    booster = fit(examples.part(half), parameters)
    others = examples.part(~half)
    predicted = predict(booster, others, objective)
    before, after = 1 - mean(others, others.analytic_us), 1 - mean(others, predicted)
    assert before > 0.07 and (after < before / 4 or objective not in OF_LIBRARY)
    assert accuracy(others.table, np.exp(predicted)) > 70 or objective == "rank"


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_trees_learn_is_turned_back_into_time(examples, objective):
    assert np.exp(log_time(examples, objective, target(examples, objective))) == pytest.approx(examples.table.time)


def test_the_same_again_is_the_same_to_the_bit(examples):
    for objective in ("residual", "mixed"):
        first, again = (fit(examples, dataclasses.replace(QUICK, objective=objective)).model_to_string() for _ in range(2))
        assert first == again


def test_what_is_slow_but_taken_for_fast_weighs_too(examples):
    """Kernels that take twice as long as predicted would never be learned by the weight of their times alone."""
    wrong = examples.table.time / examples.analytic_us > 1.5
    by_time = weights(examples, Parameters(floor=0, feared=False))
    assert weights(examples, Parameters(floor=0))[wrong].max() == 1 > 10 * by_time[wrong].max()
    assert (weights(examples, Parameters(floor=0)) >= by_time).all()


def test_it_stops_where_more_trees_do_not_choose_better(examples):
    half = np.arange(80) % 2 == 0
    many = dataclasses.replace(QUICK, trees=120, columns=1.0, learning_rate=0.5)
    booster = fit(examples.part(half), many, examples.part(~half))
    assert 0 < booster.best_iteration < 120


def test_it_goes_on_from_a_model(examples, tmp_path):
    fit(examples, QUICK).save_model(tmp_path / "model.txt")
    more = fit(examples, QUICK, begin_with=str(tmp_path / "model.txt"))
    assert more.num_trees() == 60


def test_weights_favour_kernels_near_the_best(examples):
    found = weights(examples, Parameters())
    worse = examples.table.times_worse()
    assert weights(examples, Parameters(floor=0, feared=False)) == pytest.approx(np.exp(-(worse - 1) / 0.15)) and found.max() == 1
    assert found.min() == 0.02 and weights(examples, Parameters(floor=0.1)).min() == 0.1 and (weights(examples, Parameters(objective="log_tflops")) == 1).all()


def test_failures_are_not_learned_from(examples):
    failed = dataclasses.replace(examples, table=dataclasses.replace(examples.table, time=np.where(np.arange(960) % 5 == 0, np.nan, examples.table.time)))
    assert np.isfinite(predict(fit(failed, QUICK), failed, "residual")).all()
    unknown = dataclasses.replace(failed, analytic_us=np.where(np.arange(960) % 7 == 0, np.nan, failed.analytic_us))
    assert np.isnan(predict(fit(unknown, QUICK), unknown, "residual")).sum() == len(range(0, 960, 7))
    padded = dataclasses.replace(unknown, padded_us=np.full(960, 7.5))
    assert np.exp(predict(fit(padded, QUICK), padded, "residual")[::7]) == pytest.approx(7.5)


def test_the_loss_to_stop_by_is_that_of_a_wavering_choice():
    of, time = np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 4.0, 3.0])
    assert expected_loss(of, time, np.array([0, 9, 9, 0.0])) == pytest.approx(0)
    assert expected_loss(of, time, np.array([0, 0, 0, 9.0])) == pytest.approx((0.25 + 0.25) / 2)


def test_pairs_are_pushed_apart_where_the_slower_is_preferred():
    pairwise = fitting.PairwiseGradient(np.array([0, 0, 0]), np.array([1.0, 2.0, 8.0]), np.log([2.0, 1.0, 8.0]), 0.1)
    gradient, hessian = pairwise(np.zeros(3))
    assert gradient[0] > 0 > gradient[1] and abs(gradient[2]) < gradient[0] / 10 and (hessian > 0).all()
    assert gradient.sum() == pytest.approx(0, abs=1e-6)
