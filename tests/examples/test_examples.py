# SPDX-License-Identifier: MIT
"""Runs the Python examples as a reader would. Each must end with 0, which it does only if every result was right; the sweeps
also compare what is supported with what should be. To save time they build fewer kernels than by default, and the
sweeps take one direction each.
"""
import concurrent.futures
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/python/[0-9]*.py"))
FLAGS = {"01_basic_gemm": ["--num-kernels", "1"], "02_batch_gemm": ["--max-size", "256"], "03_benchmark": ["--size", "96"],
         "05_benchmark": ["--num-kernels", "2", "--directions", "bwd_weight", "--shapes", "1"],
         "07_stress_test": ["--num-kernels", "2"], "08_heuristics": ["--strategy", "latency"], "09_ml_heuristic": ["--top", "1"],
         "10_test_all_pipelines": ["--directions", "forward"],
         "11_test_schedulers": ["--directions", "bwd_data", "--ndim", "2"],
         "12_test_config_options": ["--directions", "bwd_weight", "--ndim", "2"]}
LIMIT_S = 300


def run(path, *flags):
    return subprocess.run([sys.executable, path, *flags], capture_output=True, text=True, timeout=LIMIT_S, cwd=ROOT)


def test_all_are_there():
    names = {path.stem.split("_")[0]: path.stem for path in EXAMPLES if path.parts[-3] == "grouped_conv"}
    assert list(names) == ["01", "02", "03", "04", "05", "06", "09", "10", "11", "12"]
    assert len([path for path in EXAMPLES if path.parts[-3] == "gemm"]) == 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_example(path):
    result = run(path, *FLAGS.get(path.stem, []))
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    assert "checks passed" in result.stdout


def test_all_explain_their_flags():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in zip(EXAMPLES, pool.map(lambda path: run(path, "--help"), EXAMPLES)):
            assert result.returncode == 0 and "--device" in result.stdout and "--arch" in result.stdout, path


def test_an_arch_that_is_not_here_is_an_error_with_a_reason():
    result = run(EXAMPLES[1], "--arch", "gfx942")
    assert result.returncode not in (0, 1) and "hip:0" in result.stderr and "Traceback" not in result.stderr
    result = run(EXAMPLES[1], "--arch", "gfx942", "--device", "cpu")
    assert result.returncode == 2 and "not on cpu" in result.stderr


def test_a_crash_is_one_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(os.fspath(ROOT / "examples/grouped_conv/python"))
    import conv_sweep
    script = tmp_path / "crash.py"
    script.write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGSEGV)})\n")
    case = {"variant": "forward", "ndim_spatial": 2, "dtype": "fp32", "pipeline": "mem"}
    assert conv_sweep.outcome_of(case, script).startswith(f"CRASH with -{int(signal.SIGSEGV)}")
    script.write_text("print('FAIL wrong result')\n")
    assert conv_sweep.outcome_of(case, script) == "FAIL wrong result"
    refused = conv_sweep.outcome_of({**case, "scheduler": "interwave"}, script)
    assert refused.startswith("UNSUPPORTED(interwave: have interwave on cpu-") and "one thread computes" in refused


@pytest.mark.parametrize(("arch", "dtype"), [("sm_90a", "bf16"), ("cpu-avx2", "fp8")])
def test_what_an_arch_supports_is_known_without_it(arch, dtype, monkeypatch):
    """The library refuses ahead exactly what examples 10 to 12 take for unsupported, so that they pass where the arch is."""
    monkeypatch.syspath_prepend(os.fspath(ROOT / "examples/grouped_conv/python"))
    import conv_sweep

    places = [(direction, ndim) for direction in conv_sweep.DIRECTIONS for ndim in (2, 3)]
    args = types.SimpleNamespace(arch=arch, dtype=dtype, places=places)
    sweep_11 = importlib.import_module("11_test_schedulers")
    cases = conv_sweep.cases_of(args, conv_sweep.paired(sweep_11.PIPELINES, sweep_11.SCHEDULERS))
    fields = ("variant", "ndim_spatial", "pipeline", "scheduler")
    run = {tuple(case[field] for field in fields) for case in cases if conv_sweep.refusal_of(case) is None}
    listed = conv_sweep.listed(args, "pipeline", "scheduler")
    with_kernels = {item[:2] for item in listed}
    assert run == {item for item in listed if item[2] in sweep_11.PIPELINES} and len(run) >= len(with_kernels) > 0
    sweep_12 = importlib.import_module("12_test_config_options")
    for case in conv_sweep.cases_of(args, sweep_12.OPTIONS):
        expected = sweep_12.is_supported(case) and (case["variant"], case["ndim_spatial"]) in with_kernels
        reason = conv_sweep.refusal_of(case)
        assert (reason is None) == expected, (case, reason)


@pytest.mark.parametrize("name", ["10_test_all_pipelines", "12_test_config_options"])
def test_nothing_supported_is_no_success(name):
    result = run(ROOT / f"examples/grouped_conv/python/{name}.py", "--arch", "sm_80", "--dtype", "fp8", "--ndim", "2",
                 "--directions", "forward")
    assert result.returncode == 1 and "FAIL 0 " in result.stdout
    assert "the arch sm_80 has no forward kernels of 2 dimensions for fp8" in result.stdout


@pytest.mark.parametrize("name", ["grouped_conv/python/06_registry_json.py", "gemm/python/11_json_import.py"])
def test_an_emulated_gpu(name):
    """Where there is no GPU."""
    result = run(ROOT / "examples" / name, "--device", "emulated:sm_90a", "--dtype", "bf16")
    assert result.returncode == 0 and "device emulated:sm_90a, arch sm_90a" in result.stdout, result.stdout + result.stderr


def test_configs_from_a_file(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"variant": ["forward"], "ndim_spatial": 2, "layout": "nhwgc", "tile_config": {
        "tile_m": {"values": [64]}, "tile_n": {"values": [64]}}, "trait_config": {"pipeline": {"values": ["mem", "compv6"]}}}))
    result = run(ROOT / "examples/grouped_conv/python/06_registry_json.py", "--config", file, "--arch", "cpu-avx2")
    assert result.returncode == 0 and "1 of the file's 2 configs are valid here" in result.stdout, result.stdout
    assert "pipeline: have compv6 for conv_fwd" in result.stderr


def test_the_script_compiles_and_runs_programs(tmp_path):
    script, source = ROOT / "scripts/compile_grouped_conv_examples.py", "examples/grouped_conv/cpp/01_basic_grouped_conv.cpp"
    result = run(script, source, "--run", "--output-dir", tmp_path)
    assert result.returncode == 0 and "1 of 1 programs ran" in result.stdout, result.stdout + result.stderr
    broken = tmp_path / "broken.cpp"
    broken.write_text("int main() { return none; }\n")
    result = run(script, broken, "--output-dir", tmp_path)
    assert result.returncode == 1 and "was not declared" in result.stdout and "c++20" in result.stdout
    assert run(script, tmp_path / "nothing.cpp").returncode == 2
