# SPDX-License-Identifier: MIT
"""Result files: what they hold, which part is the newest, and that the pages follow from them."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import result_files as rf  # noqa: E402
import result_pages  # noqa: E402


def content(date, results, part="gemm", **more):
    return {"schema": 1, "commit": "0" * 40, "date": date, "chip": "h200", "device": "H200", "versions": {"cuBLAS": "13"},
            "parts": {part: {"command": "run it", "results": results}}, **more}


def result(problem="gemm:m=1,n=2,k=3,dtype=bf16", **more):
    return {"problem": problem, "family": "odd", "status": "ok", "default_us": 4.0, "measure_us": 2.0,
            "peers_us": {"a": 4.0, "b": 8.0, "c": None}, **more}


def test_a_file_reads_as_it_was_written(tmp_path):
    path = tmp_path / "h200.json"
    written = content("2026-01-01", [result(), result(status="wrong", reason="NaN")])
    rf.write(path, written)
    assert rf.read(path) == written and len(path.read_text(encoding="utf-8").splitlines()) == 7
    for broken, message in ((content("2026-01-01", [], schema=7), "schema 7"), (content("2026-01-01", [], part="x"), "part x")):
        path.write_text(rf.json.dumps(broken), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            rf.read(path)


def test_the_newest_part_counts():
    files = [content("2026-01-01", [result(), result()]), content("2026-01-02", [result()]),
             content("2026-01-03", [result()], part="conv")]
    parts = rf.latest_parts(files)
    assert [(part.name, part.file["date"]) for part in parts] == [("gemm", "2026-01-02"), ("conv", "2026-01-03")]


def test_a_ratio_is_that_of_the_fastest_peer():
    assert rf.ratio(result(), rf.DEFAULT) == 1 and rf.ratio(result(), rf.MEASURE) == 2
    assert rf.ratio(result(status="wrong"), rf.DEFAULT) is None and rf.ratio(result(peers_us={}), rf.DEFAULT) is None


def test_groups():
    problems = ["gemm:m=1,n=2,k=3,dtype=bf16", "conv_fwd:n=1,g=1,c=2,k=2,dtype=fp32", "conv_bwd_data:n=1,g=2,c=4,k=4,dtype=fp32",
                "conv_bwd_weight:n=1,g=4,c=4,k=4,dtype=fp32"]
    assert [rf.group_of(result(problem)) for problem in problems] == [
        "bf16 products", "fp32 forward, dense", "fp32 backward data, grouped", "fp32 backward weight, depthwise"]
    part = rf.Part("gemm", {}, {"results": [result(), result(default_us=1.0), result(status="failed")]})
    (mean,) = rf.means(part)
    assert (mean.cases, mean.bad, mean.default, mean.measure, mean.least, mean.peer) == (3, 1, 2.0, 2.0, 1.0, "a, b, c")


def test_a_block_is_filled():
    text = result_pages.filled("before\n<!-- results: summary -->\nold\n<!-- end of results -->\nafter", [content("2026-01-01", [result()])])
    assert "old" not in text and "| H200: bf16 products |" in text and text.startswith("before\n<!--") and text.endswith("-->\nafter")
    assert "make bench-all" in result_pages.block("models", [])


def test_the_directions_of_a_convolution_share_a_row():
    problems = [f"conv_{direction}:n=1,g=1,c=2,k=2,dtype=bf16" for direction in ("fwd", "bwd_data", "bwd_weight")]
    part = rf.Part("conv", content("2026-01-01", []), {"results": [result(problem, default_us=us) for problem, us in zip(problems, (2.0, 4.0, 1.0))]})
    (row,) = result_pages.summary_rows(part)
    assert row[0] == "H200: bf16 convolutions, dense" and row[1] == "3" and row[3] == "2.00 / 1.00 / 4.00"


def test_the_pages_follow_from_the_result_files():
    done = subprocess.run([sys.executable, ROOT / "tools/performance_pages", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
