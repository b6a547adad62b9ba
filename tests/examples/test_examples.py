# SPDX-License-Identifier: MIT
"""Runs the Python examples as a reader would. Each must end with 0, which it does only if every result was right; the sweeps
also compare what is supported with what should be. To save time they build fewer kernels than by default, and the
sweeps take one direction each.
"""
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/python/[0-9]*.py"))
FLAGS = {"01_basic_gemm": ["--num-kernels", "1"], "02_batch_gemm": ["--max-size", "256"], "03_benchmark": ["--size", "96"],
         "07_stress_test": ["--num-kernels", "2"], "09_ml_heuristic": ["--top", "1"],
         "10_test_all_pipelines": ["--directions", "forward"],
         "11_test_schedulers": ["--directions", "bwd_data", "--ndim", "2"],
         "12_test_config_options": ["--directions", "bwd_weight", "--ndim", "2"]}
LIMIT_S = 300


def run(path, *flags):
    return subprocess.run([sys.executable, path, *flags], capture_output=True, text=True, timeout=LIMIT_S, cwd=ROOT)


def test_all_are_there():
    names = {path.stem.split("_")[0]: path.stem for path in EXAMPLES if path.parts[-3] == "grouped_conv"}
    assert list(names) == ["01", "02", "03", "04", "05", "06", "09", "10", "11", "12"]
    assert len([path for path in EXAMPLES if path.parts[-3] == "gemm"]) == 11


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
    assert conv_sweep.outcome_of({**case, "scheduler": "interwave"}, script) == "UNSUPPORTED(scheduler)"


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
def test_what_a_gpu_supports_is_known_without_one(arch, monkeypatch):
    """The library refuses ahead exactly what examples 10 and 12 take for unsupported, so that they pass where the GPU is."""
    monkeypatch.syspath_prepend(os.fspath(ROOT / "examples/grouped_conv/python"))
    import importlib

    import conv_sweep

    def refusal(case):
        config = conv_sweep.config_for(case)
        return conv_sweep.refusal(config, conv_sweep.problem_for(config))

    sweep_10 = importlib.import_module("10_test_all_pipelines")
    sweep_12 = importlib.import_module("12_test_config_options")
    places = [{"variant": direction, "ndim_spatial": ndim, "dtype": "bf16", "arch": arch}
              for direction in conv_sweep.DIRECTIONS for ndim in (2, 3)]
    for place in places:
        run = {pipeline for pipeline in sweep_10.PIPELINES if refusal({**place, "pipeline": pipeline}) is None}
        assert len(run) == sweep_10.EXPECTED[arch], (place, run)
        for option in sweep_12.OPTIONS:
            case = {**place, **option}
            assert (refusal(case) is None) == sweep_12.is_supported(case), (case, refusal(case))
