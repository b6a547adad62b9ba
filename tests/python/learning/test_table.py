# SPDX-License-Identifier: MIT
"""Records as arrays, and which records nothing can be learned from."""
import numpy as np
import pytest

import tilewise
from tilewise.learning.table import table_from, use_of


def test_rows_of_a_problem_are_together(frame):
    table = table_from(frame, op="gemm", dtypes=["bf16"], arch="sm_90a")
    assert len(table) == (frame.status != "skipped").sum() and len(table.problems) == frame.problem.nunique()
    for problem, rows, best in zip(table.problems, table.rows(), table.best()):
        own = frame[(frame.problem == problem.text) & (frame.status != "skipped")]
        assert sorted(own.kernel_name) == list(table.kernels[rows])
        assert table.kernels[best] == own[own.is_best].kernel_name.iloc[0]
    assert np.nanmin(table.times_worse()) == 1


def test_a_part_is_a_table_of_some_problems(frame):
    table = table_from(frame)
    wanted = np.arange(len(table.problems)) % 3 == 0
    part = table.part(wanted)
    assert part.texts() == [text for text, keep in zip(table.texts(), wanted) if keep]
    assert [list(part.kernels[rows]) for rows in part.rows()] == [list(table.kernels[rows]) for rows, keep in zip(table.rows(), wanted) if keep]
    assert part.best().tolist() == [rows.start + int(np.nanargmin(part.time[rows])) for rows in part.rows()]


@pytest.mark.parametrize("only, told", [
    ({"op": "conv_fwd"}, "no records with op conv_fwd; there are records with gemm"),
    ({"dtypes": ["fp8", "bf8"]}, "no records with dtype fp8 or bf8; there are records with bf16"),
    ({"arch": "sm_80"}, "no records with arch sm_80; there are records with sm_90a")])
def test_records_of_something_else_are_said(frame, only, told):
    with pytest.raises(tilewise.UsageError, match=told):
        table_from(frame, **only)


def test_failures_alone_teach_nothing(frame):
    failed = frame.assign(status="crash", time_us=np.nan)
    with pytest.raises(tilewise.UsageError, match=r"no record has a time \(\d+ crash\).*measure again"):
        table_from(failed)


@pytest.mark.parametrize("time", [np.nan, 0.0, -1.0, np.inf])
def test_a_time_that_is_none_is_refused(frame, time):
    wrong = frame.copy()
    place = int(np.flatnonzero(frame.status == "ok")[3])
    wrong.loc[wrong.index[place], "time_us"] = time
    with pytest.raises(tilewise.UsageError, match=f"column time_us is {time} where the status is ok, of {frame.kernel_name.iloc[place]} on "):
        table_from(wrong)


def test_sets_say_what_their_records_are_for():
    assert [use_of(name) for name in ("gemm_test@00", "cpu_gemm_validation@0", "gemm_training@12", "mine.txt@7", "")] == [
        "test", "validation", "training", "training", "training"]
