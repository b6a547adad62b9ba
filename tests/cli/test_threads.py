# SPDX-License-Identifier: MIT
"""How many threads a launch takes: --threads, TILEWISE_THREADS, OMP_NUM_THREADS; and what a plan says of it."""
import pytest

BIG = "gemm:m=512,n=512,k=512,dtype=fp32,layout=rcr"
POOL = ("--rule-set", "builtin")


@pytest.mark.parametrize("env", [{"TILEWISE_THREADS": "1"}, {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1,4"},
                                 {"TILEWISE_THREADS": "1", "OMP_NUM_THREADS": "2"}])
def test_the_environment_counts(ask_cached, env):
    answer = ask_cached("run", BIG, *POOL, "--strategy", "rules", env=env)
    assert answer["plan"]["threads"] == 1 and "on 1 thread," in answer["plan"]["why"]
    assert "on 1 thread" in ask_cached("select", BIG, *POOL, env=env)["plan"]["why"]


@pytest.mark.parametrize("env", [{"OMP_NUM_THREADS": "100000"}, {"OMP_NUM_THREADS": "many"}, {"OMP_NUM_THREADS": "0"}])
def test_what_openmp_would_not_take_is_passed_over(ask_cached, env):
    assert ask_cached("run", BIG, *POOL, env=env)["plan"]["threads"] >= 1


@pytest.mark.parametrize("value", ["0", "-1", "100000", "many"])
def test_a_bad_number_is_refused(cached, value):
    answer = cached("run", BIG, *POOL, env={"TILEWISE_THREADS": value})
    assert answer.code == 2 and f"TILEWISE_THREADS is '{value}'" in answer.err and "1 to " in answer.err, answer


def test_a_plan_says_one_number(ask_cached):
    """The model's sentence and the launch agree for a problem too small to share."""
    plan = ask_cached("run", "gemm:m=8,n=8,k=8,dtype=fp32", *POOL, "--strategy", "rules")["plan"]
    assert plan["threads"] == 1 and "on 1 thread," in plan["why"]


def test_a_gpu_has_none(ask_cached, ask):
    plan = ask_cached("run", "gemm:m=16,n=16,k=16,dtype=bf16", "--device", "emulated:sm_90a")["plan"]
    assert plan["threads"] is None and "thread" not in plan["why"]
    assert "thread" not in ask("select", BIG, "--arch", "sm_90a")["plan"]["why"]
