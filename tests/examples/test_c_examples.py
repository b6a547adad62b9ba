# SPDX-License-Identifier: MIT
"""The C and C++ examples, built against an installed copy from outside the tree, and run."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "examples"
FOLDERS = ("c", "gemm/cpp", "grouped_conv/cpp")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / "examples" / folder).glob("0*.c*"))


@pytest.fixture(scope="module")
def examples():
    done = subprocess.run([ROOT / "tools" / "examples"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def binary(source):
    return BUILT / source.relative_to(ROOT / "examples").with_suffix("")


def run(source, *words):
    return subprocess.run([binary(source), *words], cwd=BUILT, capture_output=True, text=True, timeout=120, check=False)


def test_all_of_them_run(examples):
    for source in SOURCES:
        assert f"{source.relative_to(ROOT / 'examples').with_suffix('')} " in examples, source.name
    assert f"100% tests passed, 0 tests failed out of {len(SOURCES)}" in examples


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_help_and_arguments(examples, source):
    done = run(source, "--help")
    assert done.returncode == 0 and "--device" in done.stdout and "--arch" in done.stdout
    assert run(source, "--colour", "red").returncode == 2
    assert run(source, "--device", "abacus").returncode == 1


@pytest.mark.parametrize("name", ["gemm/cpp/01_basic_gemm", "grouped_conv/cpp/02_all_directions", "c/01_tour"])
def test_another_arch(examples, name):
    done = subprocess.run([BUILT / name, "--arch", "cpu-generic"], cwd=BUILT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "valid" in done.stdout


def test_the_tour_uses_every_function():
    header = (ROOT / "include/tilewise/tilewise.h").read_text(encoding="utf-8")
    functions = set(re.findall(r"TILEWISE_API[^;(]*?(tilewise_\w+)\(", header))
    used = set(re.findall(r"tilewise_\w+(?=\()", (ROOT / "examples/c/01_tour.c").read_text(encoding="utf-8")))
    assert functions and functions - used == set()
