# SPDX-License-Identifier: MIT
"""Scores by hand: the oracle is the first timing's best, the second timing counts, and what is missing or failed counts 0."""
import dataclasses

import numpy as np
import pytest

import tilewise
from tilewise.learning import scores
from tilewise.learning.table import Table

NAN = np.nan


def table(time, time2, networks=None):
    """Of lists for each problem."""
    sizes = [len(row) for row in time]
    of = np.repeat(np.arange(len(sizes)), sizes)
    problems = [tilewise.Problem("gemm", m=64 << i, n=64, k=64, dtype="bf16") for i in range(len(sizes))]
    names = np.array([f"k{place}" for size in sizes for place in range(size)])
    return Table(problems, networks or ["net"] * len(sizes), of, np.r_[0, np.cumsum(sizes)], names, np.array(["a", "b"] * len(of))[:len(of)],
                 np.concatenate(time).astype(float), np.concatenate(time2).astype(float), {"arch": "sm_90a"})


def test_the_second_time_counts_at_most_1():
    found = table([[10, 11, 20]] * 4, [[10.5, 10, NAN]] * 4)
    ranking = scores.ranking_of_names(found, [["k1"], ["k0"], ["k2"], ["k7", "k0"]])
    judged = scores.judge(found, ranking)
    # 10.5 / 10 is more than 1; the third has its first time alone; the fourth was not measured.
    assert judged.efficiency.tolist() == [1, 1, 10.5 / 20, 0]
    assert judged.match.tolist() == [False, True, False, False] and judged.within_noise.tolist() == [True, True, False, False]
    assert judged.after_measuring[3].tolist() == [1, 1, 10.5 / 20, 1] and judged.hits[3].tolist() == [False, True, False, True]


def test_a_failed_choice_counts_0_and_no_candidate_too():
    found = table([[10, NAN], [5, 6]], [[10, NAN], [5, 6]])
    judged = scores.judge(found, [np.array([1]), np.array([], int)])
    assert judged.efficiency.tolist() == [0, 0] and judged.after_measuring[8].tolist() == [0, 0]
    assert scores.figures(judged)["mean"] == 0 and scores.figures(judged)["below_90"] == 100


def test_a_problem_without_times_judges_nothing():
    found = table([[NAN, NAN], [5, 6]], [[NAN, NAN], [5, 6]])
    judged = scores.judge(found, scores.ranking_by(found, np.array([1, 2, 2, 1.0])))
    assert judged.efficiency == pytest.approx([5 / 6]) and scores.figures(judged)["problems"] == 1


def test_predictions_that_are_none_are_no_candidates():
    found = table([[1, 2, 3]], [[1, 2, 3]])
    assert [row.tolist() for row in scores.ranking_by(found, np.array([NAN, 5, 4]))] == [[2, 1]]


def test_measuring_takes_the_least_first_time():
    found = table([[10, 12, 11, 9]], [[10, 12, 13, 9]])
    judged = scores.judge(found, scores.ranking_of_names(found, [["k1", "k2", "k0", "k3"]]))
    assert judged.efficiency == pytest.approx([9 / 12]) and judged.after_measuring[3] == pytest.approx([0.9]) and judged.after_measuring[8] == [1]


def test_figures_are_percent_with_the_ceiling_of_noise():
    found = table([[1, 2]] * 10, [[1, 2]] * 9 + [[4, 2]])
    names = [["k0"]] * 9 + [["k1"]]
    figures = scores.figures(scores.judge(found, scores.ranking_of_names(found, names)))
    assert figures["mean"] == 100 and figures["min"] == 100 and figures["match"] == 90 and figures["pool"] == 2
    assert figures["ceiling"] == 95.0  # one problem's best is half as good the second time
    slow = scores.figures(scores.judge(found, scores.ranking_of_names(found, [["k1"]] * 10)))
    assert slow["mean"] == 55 and slow["median"] == 50 and slow["p90"] == pytest.approx(55) and slow["top3"] == 55 and slow["match"] == 0


def test_noise_is_what_times_differ_by_within_bounds():
    twice = table([[100.0] * 100], [[101.0] * 94 + [102.0] * 6])
    assert scores.noise(twice) == pytest.approx(np.log(1.02), rel=1e-3)
    assert scores.noise(table([[1, 1]], [[1, 1]])) == scores.LEAST_NOISE and scores.noise(table([[1, 1]], [[2, 2]])) == scores.MOST_NOISE
    assert scores.noise(table([[1, 2]], [[NAN, NAN]])) == scores.MOST_NOISE


def test_parts_networks_and_the_worst():
    found = table([[1, 2], [10, 40], [1, 2]], [[1, 2], [10, 40], [1, 2]], ["a", "a", "b"])
    judged = scores.judge(found, scores.ranking_of_names(found, [["k0"], ["k1"], ["k1"]]))
    other = scores.judge(found, scores.ranking_of_names(found, [["k0"]] * 3))
    parts = scores.by_part(judged, other)
    assert parts["network"] == {"a": {"problems": 2, "mean": 62.5, "p10": 32.5, "analytic": 100.0}, "b": {"problems": 1, "mean": 50.0, "p10": 50.0, "analytic": 100.0}}
    assert scores.worse_families(parts) == [] and scores.worse_families(parts, least=2) == ["a"]
    assert scores.slowdowns(judged) == {"a": pytest.approx(41 / 11, abs=1e-4), "b": 2}
    assert [one["efficiency"] for one in scores.worst(judged, 2)] == [25, 50] and scores.worst(judged)[0]["choice"] == "k1"


def test_accuracy_is_of_predicted_times():
    found = dataclasses.replace(table([[10, 20, NAN]], [[10, 20, NAN]]))
    assert scores.accuracy(found, np.array([11, 24, 5])) == 85 and scores.accuracy(found, np.array([11, 24, 5]), np.array([0])) == 90
