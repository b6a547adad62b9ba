# SPDX-License-Identifier: MIT
"""Choices that learn nothing."""
import numpy as np
import pytest

import tilewise
from tilewise.learning import baselines
from tilewise.learning.scores import judge
from tilewise.learning.table import table_from


@pytest.fixture(scope="module")
def table(frame):
    return table_from(frame)


def test_first_fit_is_the_first_of_the_rule_set(table):
    order = {kernel.name: place for place, kernel in enumerate(tilewise.kernels(op="gemm", arch="sm_90a"))}
    for rows, ranked in zip(table.rows(), baselines.by_first_fit(table)):
        names = table.kernels[rows]
        assert table.kernels[ranked[0]] == min((name for name in names if name in order), key=order.get)


def test_the_best_single_kernel_is_taken_wherever_it_may_run(table):
    rankings = baselines.by_best_single(table, table)
    first = [table.kernels[ranked[0]] for ranked in rankings]
    common = max(set(first), key=first.count)
    taken = [common in table.kernels[rows] for rows in table.rows()]
    assert sum(name == common for name in first) <= sum(taken)
    mean = judge(table, rankings).efficiency.mean()
    assert judge(table, baselines.by_first_fit(table)).efficiency.mean() < mean < 1


def test_the_nearest_shape_gives_its_order(table):
    """A table that knows its own problems chooses the best."""
    assert judge(table, baselines.by_nearest(table, table)).efficiency.tolist() == pytest.approx([1.0] * len(table.problems))
    half = np.arange(len(table.problems)) % 2 == 0
    others = table.part(~half)
    efficiency = judge(others, baselines.by_nearest(others, table.part(half))).efficiency
    assert 0.5 < efficiency.mean() < 1
    far = table.part(np.array([problem.fields["layout"] == "rrr" for problem in table.problems]))
    only = table.part(np.array([problem.fields["layout"] == "rcr" for problem in table.problems]))
    assert not any(len(ranked) for ranked in baselines.by_nearest(far, only))
