# SPDX-License-Identifier: MIT
"""tilewise bench and tune: times of kernels on problems; winners that are remembered."""
import csv
import pathlib

import pytest

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
OTHER = "gemm:m=16,n=80,k=48,dtype=fp32,layout=rcr"
CONV = "conv_fwd:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=fp32"
POOL = ("--arch", "cpu-generic", "--rule-set", "tiny")


def quiet(answer):
    """Nothing was said but that the machine is busy, which it may be."""
    return all("vary" in line for line in answer.err.splitlines())


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
    assert answer.code == 0 and quiet(answer), answer
    assert "% of roof" in answer.out and "predicted" in answer.out and GEMM in answer.out


def test_tune_remembers_the_winner(ask_cached, problems, tmp_path, cached):
    env = {"TILEWISE_CACHE_DIR": str(cached.folder)}
    answer = ask_cached("tune", "--problems", problems, "--top", "2", *POOL, env=env)
    assert answer["device"] and answer["database"].startswith(str(cached.folder))
    assert [row["problem"] for row in answer["results"]] == [GEMM, OTHER]
    plan = ask_cached("run", OTHER, *POOL)
    assert plan["plan"]["source"] == "tuned" and plan["kernel"] == answer["results"][1]["kernel"]
    assert ask_cached("run", OTHER, *POOL, "--strategy", "rules")["plan"]["source"] == "rules"
    answer = cached("tune", GEMM, "--top", "1", *POOL)
    assert answer.code == 0 and GEMM in answer.out and "us" in answer.out and quiet(answer), answer


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


def test_predicted_beside_measured(ask_cached, ask):
    (row,) = ask_cached("bench", GEMM, "--strategy", "rules", *POOL)["results"]
    best = ask("select", GEMM, *POOL)["candidates"][0]
    assert row["kernel"] == best["name"] and row["predicted_us"] == pytest.approx(best["predicted_us"], rel=1e-6)


def test_csv(cached):
    answer = cached("bench", GEMM, OTHER, "--csv", *POOL)
    assert answer.code == 0, answer
    rows = list(csv.DictReader(answer.out.splitlines()))
    assert [row["problem"] for row in rows] == [GEMM, OTHER]
    assert all(float(row["us"]) > 0 and float(row["predicted_us"]) > 0 and row["kernel"] and row["device"] for row in rows)
    assert cached("bench", GEMM, "--csv", "--json", *POOL).code == 2


def test_ranges(ask_cached, cached):
    answer = ask_cached("bench", "gemm:m=16:64*2,n=48,k=32,dtype=fp32", *POOL)
    assert [row["problem"].split(",")[0] for row in answer["results"]] == ["gemm:m=16", "gemm:m=32", "gemm:m=64"]
    bad = cached("bench", "gemm:m=16:64*1,n=48,k=32,dtype=fp32", *POOL)
    assert bad.code == 2 and "16:64*1" in bad.err, bad


@pytest.mark.parametrize("command", ["bench", "tune"])
def test_problems_from_standard_input(ask_cached, command):
    answer = ask_cached(command, "--problems", "-", "--top", "1", *POOL, stdin=f"{GEMM}\n# no more\n")
    assert [row["problem"] for row in answer["results"]] == [GEMM]


def test_an_impossible_problem_does_not_end_it(cached):
    impossible = "conv_fwd:n=1,c=8,k=8,in=2x2,filter=3x3,dtype=fp32"
    answer = cached("bench", impossible, GEMM, *POOL, "--json")
    assert answer.code == 3 and [row["problem"] for row in answer.json["results"]] == [GEMM], answer
    (failure,) = answer.json["failures"]
    assert failure["problem"] == impossible and "the padded input" in failure["reason"] and failure["kernel"] is None
    people = cached("bench", impossible, GEMM, *POOL)
    assert people.code == 3 and GEMM in people.out and "the padded input" in people.err, people


def test_noise_is_said(ask_cached):
    """Whether the times vary is the machine's; that a note says so where they do, ours."""
    for row in ask_cached("bench", GEMM, "--all", *POOL)["results"]:
        assert ("noise" in [note["kind"] for note in row["notes"]]) == (row["spread"] > 0.1)


@pytest.fixture
def openblas():
    """NumPy's own copy of OpenBLAS."""
    import numpy
    found = sorted((pathlib.Path(numpy.__file__).parent.parent / "numpy.libs").glob("*openblas*.so"))
    if not found:
        pytest.skip("this NumPy has no OpenBLAS of its own")
    return found[0]


def test_a_peer(ask_cached, cached, openblas):
    answer = ask_cached("bench", GEMM, CONV, "--peer", f"openblas={openblas}", *POOL)
    (row,) = answer["peers"]
    assert row["problem"] == GEMM and row["peer"].startswith("OpenBLAS") and row["us"] > 0 and row["tflops"] > 0
    people = cached("bench", GEMM, "--peer", f"openblas={openblas}", *POOL)
    assert people.code == 0 and row["peer"] in people.out, people


@pytest.mark.parametrize("peer, code, told", [("openblas=/nonexistent.so", 5, "--peer openblas=FILE"), ("mkl", 2, "unknown peer"),
                                              ("cublas", 3, "make bench-gpu")])
def test_a_peer_that_cannot_be_loaded(cached, peer, code, told):
    answer = cached("bench", GEMM, "--peer", peer, *POOL)
    assert answer.code == code and told in answer.err, answer
