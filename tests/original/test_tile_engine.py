# SPDX-License-Identifier: MIT
"""The benchmark scripts of tile_engine: what they ask of sweep for each form of a config, and the columns they write."""
import csv
import json
import pathlib
import sys

import pytest

import tilewise
from tilewise import _original_sweep
from tilewise._verbs import guarded

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONV = ROOT / "tile_engine/ops/grouped_conv"
GEMM = ROOT / "tile_engine/ops/gemm"
PROBLEM = {"conv": "conv_fwd:n=8,g=2,c=64,k=32,in=28x14,filter=3x1,stride=2x1,pad=1x0,dilation=1x1,dtype=bf16,layout=nhwgc",
           "gemm": "gemm:m=512,n=256,k=128,dtype=bf16,layout=rcr"}
# Takes down its words, and the kernels of a config, then writes two records.
SWEEP = """#!{python} -S
import csv, json, os, sys
words = sys.argv[2:]
given = dict(zip(words[::2], words[1::2])) if "--resume" not in words else dict(zip(*[iter([w for w in words if w != "--resume"])] * 2))
given["resume"] = "--resume" in words
if "--config" in given:
    given["kernels"] = json.load(open(given["--config"]))
json.dump(given, open({told!r}, "w"))
with open(given["--out"], "w", newline="") as file:
    table = csv.DictWriter(file, ["problem", "kernel_name", "status", "time_us", "tflops"], lineterminator="\\n")
    table.writeheader()
    table.writerow(dict(problem={problem!r}, kernel_name="fast", status="ok", time_us=50.0, tflops=3.5))
    table.writerow(dict(problem={problem!r}, kernel_name="broken", status="crash", time_us="", tflops=""))
sys.exit(5 if given["--problems"].endswith("none.txt") else 0)
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """sweep(op, config, *words) -> (exit code, what sweep was given, rows of the table)."""

    def run(op, config, *words, problems="some"):
        program, told, table = tmp_path / "tilewise", tmp_path / "told.json", tmp_path / "out.csv"
        program.write_text(SWEEP.format(python=sys.executable, told=str(told), problem=PROBLEM[op]))
        program.chmod(0o755)
        monkeypatch.setattr(_original_sweep, "command", lambda: program)
        if not isinstance(config, pathlib.Path):
            (tmp_path / "config.json").write_text(json.dumps(config))
            config = tmp_path / "config.json"
        listed = tmp_path / f"{problems}.txt"
        listed.write_text(f"gemm:m=8,n=8,k=8,dtype=bf16  # first\n{PROBLEM[op]}  # second\n")
        given = [str(config), "--arch", "sm_90a", "--problems", str(listed), "--csv", str(table), *words]
        code = guarded("sweep", lambda: _original_sweep.benchmark(given, op, ""))
        rows = list(csv.DictReader(open(table, newline=""))) if table.exists() else []
        return code, json.loads(told.read_text()) if told.exists() else {}, rows

    return run


@pytest.mark.parametrize("op, path", [("conv", CONV / f"configs/{name}_bf16.json") for name in ("forward", "bwd_data", "bwd_weight")] +
                         [("gemm", GEMM / "configs/gemm_bf16.json")])
def test_the_configs_that_come_with_it(sweep, op, path):
    code, told, _ = sweep(op, path, "--workers", "8", "--batch-size", "20")
    assert code == 0 and told["--rule-set"] == "default" and told["--device"] == "cuda:0" and told["resume"]
    assert told["--workers"] == "8" and told["--timeout"] == "30" and "kernels" not in told


def test_columns_of_the_original_beside_those_of_a_record(sweep):
    code, _, rows = sweep("conv", "default")
    sizes = {"N": 8, "C": 64, "K": 32, "G": 2, "Di": 1, "Hi": 28, "Wi": 14, "Z": 1, "Y": 3, "X": 1, "stride_d": 1, "stride_h": 2, "stride_w": 1,
             "pad_d": 0, "pad_h": 1, "pad_w": 0, "dilation_d": 1, "dilation_h": 1, "dilation_w": 1}
    assert code == 0 and list(rows[0])[:2 + len(sizes)] == ["kernel", "problem_idx", *sizes]
    assert {name: int(rows[0][name]) for name in sizes} == sizes
    assert rows[0]["latency_ms"] == "0.05" and rows[0]["tflops"] == "3.5" and rows[0]["non_zero"] == "1" and rows[0]["kernel"] == "fast"
    assert rows[0]["problem_idx"] == "1"  # its place in the list
    assert rows[1]["latency_ms"] == "" and rows[1]["non_zero"] == "0" and rows[1]["status"] == "crash"
    _, _, rows = sweep("gemm", "default")
    assert [rows[0][name] for name in "MNK"] == ["512", "256", "128"]


def test_values_of_the_original_choose_kernels(sweep):
    config = {"rule_set": "tests", "tile_config": {"tile_m": {"values": [64, 128]}, "warp_tile_k": {"min": 8, "max": 16, "step": 8}},
              "trait_config": {"data_type": {"values": ["bf16"]}, "pipeline": {"values": ["compv5"]}}}
    _, told, _ = sweep("gemm", config)
    listed = [kernel for kernel in tilewise.kernels(op="gemm", arch="sm_90a", rule_set="tests", dtype="bf16") if kernel.available]
    wanted = [kernel.name for kernel in listed if kernel.config["tile"].split("x")[0] in ("64", "128")
              and kernel.config["warp_tile"].endswith(("x8", "x16")) and kernel.config["pipeline"] == "compv5"]
    assert told["kernels"] == wanted and 0 < len(wanted) < len(listed)
    _, told, _ = sweep("gemm", config, "--max-kernels", "1", "--kernel-timeout", "5", "--device", "emulated:sm_90a")
    assert told["kernels"] == wanted[:1] and told["--timeout"] == "5" and told["--device"] == "emulated:sm_90a"


def test_fields_as_lists_are_handed_on(sweep):
    fields = {"op": "gemm", "tile": ["64x64x32", "128x64x32"]}
    assert sweep("gemm", fields)[1]["kernels"] == fields


@pytest.mark.parametrize("config, words, told", [
    ({"trait_config": {"pipeline": {"values": ["compv9"]}}}, [], "pipeline: no gemm kernel of sm_90a has one of compv9; those left have "),
    ({"trait_config": {"colour": {"values": [1]}}}, [], "colour: "), ({"tile_config": {"tile_m": {"from": 1}}}, [], "need values, or min, max and step"),
    ([], ["--max-kernels", "2"], "--max-kernels: ")])
def test_what_cannot_be_is_said(sweep, capsys, config, words, told):
    code, _, _ = sweep("gemm", config, *words)
    assert code == 2 and told in capsys.readouterr().err


def test_a_sweep_that_fails_says_so_by_its_code(sweep):
    code, _, rows = sweep("gemm", "default", problems="none")
    assert code == 5 and not rows
