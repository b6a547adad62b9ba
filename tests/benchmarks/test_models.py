# SPDX-License-Identifier: MIT
"""The parts of benchmarks/models.py that need neither torch nor a GPU: options, ratios, tables."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import models  # noqa: E402


def side(ms, **more):
    return {"ms": ms, "least_ms": ms, "first_s": 1.0, "error": 1e-3, **more}


RESULTS = [{"model": "one", "layers": 2, "sides": {"compile": side(2.0), "optimize": side(1.0, host_us_per_layer=3.0)}},
           {"model": "two", "layers": 2, "sides": {"compile": side(1.0), "optimize": side(2.0), "eager": {"failed": "why"}}}]


def test_a_ratio_is_torchs_time_over_ours():
    assert models.ratio(RESULTS[0], "optimize", "compile") == 2.0
    assert models.ratio(RESULTS[1], "replace", "eager") is None
    last = models.ratios_table(RESULTS).splitlines()[-1]
    assert [cell.strip() for cell in last.strip("|").split("|")] == ["geometric mean", "1.00"]


def test_failed_sides_are_shown():
    lines = models.sides_table(RESULTS).splitlines()
    assert any("eager" in line and "why" in line for line in lines)
    assert any("3.0" in line for line in lines)


def test_options():
    options = models.read_options(["--device", "cpu", "--models", "resnet18", "--quick"])
    task = models.task_of(options, "resnet18")
    assert task["dtype"] == "float32" and task["rounds"] == 3 and task["phases"] == ["inference", "training"]
    assert models.read_options([]).dtype == "bfloat16"
    with pytest.raises(SystemExit):
        models.read_options(["--phases", "sleep"])
