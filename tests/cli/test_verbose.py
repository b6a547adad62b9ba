# SPDX-License-Identifier: MIT
"""TILEWISE_VERBOSE: one line for each choice, build, load and run; and ranges for a profiler."""
import re
import subprocess

import pytest

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
POOL = ("--rule-set", "builtin")


def lines_of(answer):
    return [line for line in answer.err.splitlines() if line.startswith("tilewise: ")]


def test_nothing_is_said_unless_asked(run, tmp_path):
    for value in ("", "0"):
        assert not run("run", GEMM, *POOL, env={"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_VERBOSE": value}).err


def test_one_line_for_each_choice_build_load_and_run(run, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_VERBOSE": "1"}
    answer = run("run", GEMM, *POOL, "--threads", "1", env=env)
    lines = lines_of(answer)
    assert [line.split()[1] for line in lines] == ["choose", "build", "load", "run"], answer
    assert all(re.search(r"\([0-9.]+ (us|ms|s)\)$", line) for line in lines), answer
    choose, build, load, ran = lines
    assert GEMM in choose and re.search("rules: the analytic model|model: the learned model", choose)
    assert ": builtin (" in build and "on cpu" in load and GEMM in ran and "1 thread" in ran
    assert ": cache (" in lines_of(run("run", GEMM, *POOL, env=env))[1]


def test_two_says_more_about_choices(run, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_VERBOSE": "2"}
    answer = run("run", GEMM, *POOL, env=env)
    assert "candidate 1: " in answer.err and "predicted" in answer.err and "rejected" in answer.err, answer


def test_a_failure_is_told_with_its_reason(run, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_VERBOSE": "1", "TILEWISE_CXX": "/bin/false"}
    answer = run("run", "gemm:m=64,n=48,k=32,dtype=fp32", "--kernel",
                 "gemm_fp32_any_mem_default_intrawave_48x64x96_1x1x1_6x16x1@cpu-avx2", "--arch", "cpu-avx2", env=env)
    told = [line for line in lines_of(answer) if line.startswith("tilewise: build ")]
    assert answer.code and (not told or "/bin/false" in told[0]), answer


@pytest.fixture
def profiler(tmp_path):
    """A stand-in for NVIDIA's library of ranges, which notes what it is told. -> the environment, the file"""
    source, library, notes = tmp_path / "nvtx.c", tmp_path / "libnvToolsExt.so.1", tmp_path / "ranges.txt"
    source.write_text('#include <stdio.h>\n#include <stdlib.h>\n'
                      'static int note(const char* t) { FILE* f = fopen(getenv("RANGES"), "a"); fprintf(f, "%s\\n", t);'
                      ' return fclose(f); }\n'
                      'int nvtxRangePushA(const char* t) { return note(t); }\nint nvtxRangePop(void) { return note("end"); }\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_LIBRARY_PATH": str(tmp_path), "RANGES": str(notes), "TILEWISE_CACHE_DIR": str(tmp_path / "cache")}, notes


def test_ranges_for_a_profiler(run, profiler):
    env, notes = profiler
    assert run("run", GEMM, *POOL, env=env).code == 0 and not notes.exists(), "nobody profiles"
    answer = run("run", GEMM, *POOL, env={**env, "NVTX_INJECTION64_PATH": "/some/profiler.so"})
    assert answer.code == 0 and not answer.err, answer
    ranges = notes.read_text().splitlines()
    assert [line.split()[1] for line in ranges if line != "end"] == ["choose", "build", "load", "run"]
    assert ranges.count("end") == 4
