# SPDX-License-Identifier: MIT
"""tools/bench_all and the parts it measures: what is left, what is kept, and how files are joined. No part is really measured."""
import argparse
import importlib.machinery
import importlib.util
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bench_parts  # noqa: E402
import result_files  # noqa: E402

loader = importlib.machinery.SourceFileLoader("bench_all", str(ROOT / "tools" / "bench_all"))
bench_all = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_all", loader))
loader.exec_module(bench_all)


class Counting:
    """A part with three problems, of which each run of a program measures one."""

    name, least_seconds = "gemm", 0

    def next_command(self, kept, limit, folder):
        number = len(kept["results"])
        if number == min(3, limit or 3):
            return None
        return [sys.executable, "-c", f"open({str(folder / 'out')!r}, 'w').write('{number}')"], {}

    def read(self, folder, kept, code):
        number = (folder / "out").read_text()
        return [{"problem": f"gemm:m={number}", "family": "x", "status": "ok"}], {"peer": number}


def options(out, limit=None):
    return argparse.Namespace(out=out, limit=limit)


def content(**more):
    return {"schema": 1, "commit": "a", "date": "2026-01-01", "chip": "h200", "device": "H200", "versions": {}, "parts": {}, **more}


def test_a_part_goes_on_until_it_is_measured(tmp_path):
    file = content()
    assert bench_all.run_part(Counting(), file, options(tmp_path / "r.json", 2), None) is True
    assert len(file["parts"]["gemm"]["results"]) == 2
    assert bench_all.run_part(Counting(), file, options(tmp_path / "r.json"), None) is True
    kept = result_files.read(tmp_path / "r.json")
    assert [result["problem"][-1] for result in kept["parts"]["gemm"]["results"]] == ["0", "1", "2"] and kept["versions"] == {"peer": "2"}


def test_a_deadline_leaves_the_rest(tmp_path):
    assert bench_all.run_part(Counting(), content(), options(tmp_path / "r.json"), bench_all.time.monotonic() - 1) is False
    program = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.stdin.read()"
    hanging = bench_all.subprocess.Popen([sys.executable, "-c", program], stdin=bench_all.subprocess.PIPE, stdout=bench_all.subprocess.PIPE,
                                         start_new_session=True)
    child = pathlib.Path("/proc", hanging.stdout.readline().decode().strip(), "stat")
    assert not bench_all.wait(hanging, bench_all.time.monotonic() - 100)
    assert hanging.returncode < 0

    def runs():
        try:
            return child.read_text().split(")")[1].split()[0] != "Z"
        except OSError:
            return False

    until = bench_all.time.monotonic() + 10
    while runs() and bench_all.time.monotonic() < until:
        bench_all.time.sleep(0.05)
    assert not runs()


def test_files_are_joined():
    def one(*problems, **more):
        results = [{"problem": problem, "family": "x", "status": "ok"} for problem in problems]
        return content(parts={"gemm": {"command": "c", "seconds": 5, "results": results}}, **more)

    whole = bench_all.merged([one("p", "q"), one("q", "r", versions={"peer": "1"})])
    part = whole["parts"]["gemm"]
    assert [result["problem"] for result in part["results"]] == ["p", "q", "r"] and part["seconds"] == 10 and whole["versions"] == {"peer": "1"}
    with pytest.raises(ValueError, match="commit differs: a and b"):
        bench_all.merged([one("p"), one("p", commit="b")])


def test_only_unmeasured_lines_are_asked_for(tmp_path):
    part = bench_parts.PARTS["conv"]
    (line, problems), *rest = part.lines()
    assert len(problems) == 3
    kept = {"results": [{"problem": problem} for problem in problems]}
    words, environment = part.next_command(kept, 2, tmp_path)
    assert words[1].endswith("gpu_conv.py") and environment["PYTHONPATH"].endswith("python")
    assert (tmp_path / "problems.txt").read_text().splitlines() == [rest[0][0]]
    assert part.next_command(kept, 1, tmp_path) is None


def test_what_a_program_says_becomes_results(tmp_path):
    found = {"problem": "p", "family": "x", "status": "ok", "ours_us": 1.23456789, "model_us": 2.0, "peers_us": {"cublas": 3.0}, "sets": 2}
    wrong = {"problem": "q", "family": "x", "status": "wrong", "reason": "NaN"}
    (tmp_path / "out.json").write_text(json.dumps({"environment": {"torch": "2.11", "device": "H200"}, "results": [found, wrong, found]}))
    results, versions = bench_parts.PARTS["gemm"].read(tmp_path, {"results": [{"problem": "other", "family": "x"}]}, 0)
    assert results[0] == {"problem": "p", "family": "x", "status": "ok", "default_us": 2.0, "measure_us": 1.235, "peers_us": {"cuBLAS": 3.0}}
    assert results[1] == wrong and versions == {"torch": "2.11"}
    epilogues, _ = bench_parts.PARTS["epilogues"].read(tmp_path, {"results": []}, 0)
    assert epilogues[0]["default_us"] == 2.0 and "measure_us" not in epilogues[0]


def test_models_become_results():
    sides = {"eager": {"ms": 2.0}, "compile": {"ms": 1.0}, "optimize": {"ms": 0.5}, "graph": {"failed": "no"}, "train eager": {"ms": 4.0},
             "train replace": {"ms": 8.0}}
    inference, training = bench_parts.model_results({"model": "m", "sides": sides})
    assert inference["default_us"] == 500 and inference["peers_us"] == {"torch eager": 2000.0, "torch compile": 1000.0}
    assert training["family"] == "models, training" and result_files.ratio(training, result_files.DEFAULT) == 0.5
    assert bench_parts.model_results({"model": "m", "failed": "why", "sides": {}})[0]["reason"] == "why"


def test_a_cpu_part_goes_on_behind_what_it_has(tmp_path):
    part = bench_parts.PARTS["cpu-gemm"]
    words, environment = part.next_command({"results": [{}] * 7}, None, tmp_path)
    assert words[words.index("--skip") + 1] == "7" and words[words.index("--threads") + 1] == "1" and environment["OMP_NUM_THREADS"] == "1"
    line = {"problem": "p", "family": "squares, plain", "status": "ok", "peers_us": {"oneDNN 3.6.2": 2.0, "oneDNN 2.6.3": 3.0}, "default_us": 1.0}
    (tmp_path / "out.jsonl").write_text(json.dumps(line) + "\n" + "{\"torn")
    kept = {"results": []}
    results, versions = part.read(tmp_path, kept, -15)
    assert len(results) == 1 and versions == {"oneDNN": "3.6.2, 2.6.3"} and "complete" not in kept
    part.read(tmp_path, kept, 0)
    assert kept["complete"] and part.next_command(kept, None, tmp_path) is None
