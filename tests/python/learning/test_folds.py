# SPDX-License-Identifier: MIT
"""Nothing is learned from a neighbour of a shape that judges."""
import random

import numpy as np
import pytest

import tilewise
from tilewise.learning.folds import Neighbours, folds
from tilewise.problem_sets import dimensions


def shapes(count=150):
    draw = random.Random(3)
    gemms = [tilewise.Problem("gemm", m=round(2 ** draw.uniform(0, 14)), n=round(2 ** draw.uniform(2, 13)), k=round(2 ** draw.uniform(3, 13)),
                              dtype="bf16") for _ in range(count)]
    return gemms + [tilewise.Problem(f"conv_fwd:n=4,g=1,c=64,k={8 * k},in={size},filter={filter},dtype=bf16")
                    for k in (1, 3, 9) for size, filter in (("20x20", "1x1"), ("100x100", "3x3"), ("900", "3"))]


@pytest.fixture(scope="module")
def problems():
    return shapes()


def are_within_twice(a, b):
    a, b = dimensions(a.fields), dimensions(b.fields)
    return len(a) == len(b) and all(max(x, y) <= 2 * min(x, y) for x, y in zip(a, b))


def test_no_fold_learns_from_neighbours_of_what_judges_or_stops_it(problems):
    judged = np.zeros(len(problems), int)
    for fold in folds(problems, 5):
        judged += fold.judge
        for one, other in ((fold.left, fold.judge), (fold.stop, fold.judge), (fold.train, fold.stop)):
            assert one.any() and not any(are_within_twice(problems[i], problems[j]) for i in np.flatnonzero(one) for j in np.flatnonzero(other))
        assert not (fold.train & ~fold.left).any() and not (fold.stop & ~fold.left).any()
    assert (judged == 1).all()


def test_folds_are_about_as_large_and_the_same_again(problems):
    first, again = list(folds(problems, 5)), list(folds(problems, 5))
    assert all((a.train == b.train).all() and (a.judge == b.judge).all() for a, b in zip(first, again))
    assert max(fold.judge.sum() for fold in first) < 1.5 * len(problems) / 5
    assert min(fold.left.sum() for fold in first) > len(problems) / 2


def test_twice_is_near_and_more_is_not():
    near = Neighbours([tilewise.Problem("gemm", m=m, n=64, k=64, dtype="bf16") for m in (64, 128, 129, 32)])
    assert [near.of(i).tolist() for i in range(4)] == [[0, 1, 3], [0, 1, 2], [1, 2], [0, 3]]


@pytest.mark.parametrize("count, splits, told", [(1, 5, "1 shapes in 1 groups of neighbours, too few for 5 folds"), (40, 1, "1 folds; need at least 2")])
def test_too_few_shapes_are_refused(problems, count, splits, told):
    with pytest.raises(tilewise.UsageError, match=told):
        list(folds(problems[:count], splits))
