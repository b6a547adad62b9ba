# SPDX-License-Identifier: MIT
"""tilewise bench and tune: times of kernels on problems; winners that are remembered."""
import pytest

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
OTHER = "gemm:m=16,n=80,k=48,dtype=fp32,layout=rcr"
CONV = "conv_fwd:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=fp32"
POOL = ("--arch", "cpu-generic", "--rule-set", "tiny")


@pytest.fixture
def problems(tmp_path):
    """A file with two problems, and what else may stand in one."""
    path = tmp_path / "problems.txt"
    path.write_text(f"# problems\n\n{GEMM}\n  {OTHER}   # the other one\n")
    return str(path)


def test_shape_of_the_json(ask_cached, problems):
    answer = ask_cached("bench", "--problems", problems, *POOL)
    assert answer["device"] and answer["failures"] == []
    assert [row["problem"] for row in answer["results"]] == [GEMM, OTHER]
    for row in answer["results"]:
        assert set(row) >= {"problem", "kernel", "us", "tflops", "gbps", "roof"}
        assert row["us"] > 0 and row["gbps"] > 0 and row["roof"] > 0
    assert answer["results"][0]["tflops"] == pytest.approx(2 * 64 * 48 * 32 / answer["results"][0]["us"] / 1e6, rel=1e-3)


@pytest.mark.parametrize("op", ["conv_fwd", "conv_bwd_data", "conv_bwd_weight"])
def test_convolutions(ask_cached, op):
    rows = ask_cached("bench", CONV.replace("conv_fwd", op), *POOL)["results"]
    assert len(rows) == 1 and rows[0]["problem"].startswith(op + ":")
    assert rows[0]["tflops"] == pytest.approx(2 * 6 * 6 * 8 * 8 * 9 / rows[0]["us"] / 1e6, rel=1e-3)


def test_all_times_every_kernel_that_may_run(ask_cached, ask):
    rows = ask_cached("bench", GEMM, "--all", *POOL)["results"]
    candidates = {item["name"] for item in ask("select", GEMM, *POOL)["candidates"]}
    assert candidates and {row["kernel"] for row in rows} == candidates
    assert [row["us"] for row in rows] == sorted(row["us"] for row in rows)


def test_kernel_and_strategy(ask_cached, ask):
    candidates = [item["name"] for item in ask("select", GEMM, *POOL)["candidates"]]
    row = ask_cached("bench", GEMM, "--kernel", candidates[-1], "--arch", "cpu-generic")["results"]
    assert [item["kernel"] for item in row] == [candidates[-1]]
    row = ask_cached("bench", GEMM, "--strategy", "rules", *POOL)["results"]
    assert [item["kernel"] for item in row] == [candidates[0]]


def test_what_people_read(cached):
    answer = cached("bench", GEMM, *POOL)
    assert answer.code == 0 and not answer.err, answer
    assert "% of roof" in answer.out and GEMM in answer.out


def test_tune_remembers_the_winner(ask_cached, problems, tmp_path, cached):
    env = {"TILEWISE_CACHE_DIR": str(cached.folder)}
    answer = ask_cached("tune", "--problems", problems, "--top", "2", *POOL, env=env)
    assert answer["device"] and answer["database"].startswith(str(cached.folder))
    assert [row["problem"] for row in answer["results"]] == [GEMM, OTHER]
    plan = ask_cached("run", OTHER, *POOL)
    assert plan["plan"]["source"] == "tuned" and plan["kernel"] == answer["results"][1]["kernel"]
    assert ask_cached("run", OTHER, *POOL, "--strategy", "rules")["plan"]["source"] == "rules"
    answer = cached("tune", GEMM, "--top", "1", *POOL)
    assert answer.code == 0 and GEMM in answer.out and "fastest of 1" in answer.out and not answer.err, answer


@pytest.mark.parametrize("command", ["bench", "tune"])
@pytest.mark.parametrize("words, code, told", [
    ([], 2, "--problems"),
    (["--problems", "nowhere.txt"], 2, "nowhere.txt"),
    (["conv_fwd:n=1,c=8,k=8,in=2x2,filter=3x3,dtype=fp32"], 3, "the padded input"),
    ([GEMM, "gemm:m=1"], 2, "'n' is missing"),
    ([GEMM, "--device", "cuda:99"], 5, "cuda:99"),
    ([GEMM, "--top", "none"], 2, "--top"),
    ([GEMM, "--arch", "sm_80"], 3, "sm_80"),
])
def test_bad_words(cached, command, words, code, told):
    answer = cached(command, *words)
    assert answer.code == code and told in answer.err and not answer.out, answer
    assert cached(command, *words, "--json").json["error"]["code"] == code


@pytest.mark.parametrize("command", ["bench", "tune"])
def test_a_bad_line_is_named_with_its_place(cached, command, tmp_path):
    path = tmp_path / "problems.txt"
    path.write_text(f"{GEMM}\n# fine\ngemm:m=1,n=1\n")
    answer = cached(command, "--problems", str(path))
    assert answer.code == 2 and f"{path}:3: " in answer.err, answer
    path.write_text("# nothing\n")
    answer = cached(command, "--problems", str(path))
    assert answer.code == 2 and "no problem" in answer.err, answer


def test_all_excludes_a_choice(cached):
    for words in (["--strategy", "rules"], ["--kernel", "x@cpu-generic"]):
        answer = cached("bench", GEMM, "--all", *words)
        assert answer.code == 2 and "--all" in answer.err and words[0] in answer.err, answer


def test_kernels_that_cannot_be_built_fail_the_command(run, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_CXX": "/nonexistent/c++"}
    answer = run("bench", GEMM, "--all", *POOL, "--json", env=env)
    assert answer.code == 1 and not answer.json["results"], answer
    assert answer.json["failures"] and all("TILEWISE_CXX" in row["reason"] for row in answer.json["failures"])
    answer = run("tune", GEMM, *POOL, env=env)
    assert answer.code == 5 and "could be measured" in answer.err, answer
