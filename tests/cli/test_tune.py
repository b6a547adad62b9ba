# SPDX-License-Identifier: MIT
"""tilewise tune and the strategy measure: what was found out is remembered, and never lost in silence."""
import json

import pytest

GEMM = "gemm:m=90,n=96,k=96,dtype=fp32,layout=rcr"
POOL = ("--rule-set", "builtin", "--top", "2")


@pytest.fixture
def tuning(tmp_path):
    """A cache of this test's own: tuning() -> its records as dicts."""
    path = tmp_path / "tuning.jsonl"

    def read():
        return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []

    read.env, read.path = {"TILEWISE_CACHE_DIR": str(tmp_path)}, path
    return read


@pytest.mark.parametrize("cache", ["/proc/none", "/dev/null/tilewise"])
def test_a_result_that_cannot_be_kept_fails(run, cache):
    for words in ((), ("--json",)):
        answer = run("tune", GEMM, *POOL, *words, env={"TILEWISE_CACHE_DIR": cache})
        assert answer.code == 1 and cache in answer.err and "TILEWISE_CACHE_DIR" in answer.err, answer


def test_measure_remembers_across_processes(ask, tuning):
    words = ("run", GEMM, "--strategy", "measure", *POOL)
    first = ask(*words, env=tuning.env)
    assert first["plan"]["source"] == "measured" and len(tuning()) == 1
    record = {**tuning()[0], "spread": 0.01}
    tuning.path.write_text(json.dumps(record) + "\n")
    second = ask(*words, env=tuning.env)
    assert second["plan"]["source"] == "tuned" and second["kernel"] == first["kernel"]
    assert ask("tune", GEMM, *POOL, env=tuning.env)["results"][0]["why"].startswith("measured before")
    assert tuning() == [record]


def test_what_was_noisy_is_measured_again(ask, tuning):
    ask("tune", GEMM, *POOL, env=tuning.env)
    tuning.path.write_text(json.dumps({**tuning()[0], "spread": 0.5}) + "\n")
    assert ask("run", GEMM, "--strategy", "measure", *POOL, env=tuning.env)["plan"]["source"] == "measured"


def test_again_never_replaces_a_better_record(ask, tuning):
    """A record that no measurement beats stays, unless another kernel is faster beside it."""
    ask("tune", GEMM, *POOL, env=tuning.env)
    record = {**tuning()[0], "us": 0.001, "spread": 0.01}
    tuning.path.write_text(json.dumps(record) + "\n")
    answer = ask("tune", GEMM, *POOL, "--again", env=tuning.env)["results"][0]
    after = tuning()[-1]
    if after["kernel"] == record["kernel"]:
        assert tuning() == [record] and answer["kernel"] == record["kernel"] and "measured before" in answer["why"]
    else:
        assert after["spread"] <= 0.1 if "spread" in after else True
