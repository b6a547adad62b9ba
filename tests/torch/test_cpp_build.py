# SPDX-License-Identifier: MIT
"""How the C++ ops get there: compiled once, in the background, by one of many processes, with a message where that fails. The
compiler of these tests hands out the ops that the real one has built; kernels it leaves to the real one.
"""
import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import tilewise.torch as tt  # noqa: E402  only where torch is installed
from tilewise.dispatcher_common import get_build_dir  # noqa: E402
from tilewise.torch import _cpp  # noqa: E402

pytestmark = pytest.mark.compiles

COMPILER = """#!/bin/sh
case "$*" in *kernel.ext*) ;; *) exec c++ "$@" ;; esac
echo compiled >> "$COMPILED"
[ -z "$FAIL" ] || { echo "the disk is on fire"; exit 1; }
sleep 1
while [ "$1" != -o ]; do shift; done
cp "$BUILT" "$2"
"""

# Computes at once, waits for the C++ ops if told to, computes again.
PROGRAM = """
import sys, time, torch, tilewise.torch as tt
from tilewise.torch import _cpp
x, w = torch.ones(2, 3), torch.ones(4, 3)
print("first", _cpp.is_loaded(), tt.linear(x, w).sum().item())
end = time.time() + float(sys.argv[1])
while time.time() < end and not _cpp.is_loaded():
    time.sleep(0.05)
print("then", _cpp.is_loaded(), tt.linear(x, w).sum().item())
"""


@pytest.fixture
def ops_file():
    """Where the real compiler has put them."""
    tt.build_ops()
    source = json.loads(_cpp._request())["source"]
    return next(path.with_name("kernel.ext") for path in get_build_dir().glob("v1/*/*/source.cpp")
                if path.read_text() == source)


@pytest.fixture
def world(tmp_path, ops_file):
    """The environment of a program, with a cache and a compiler of its own."""
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TILEWISE_TORCH")}
    return {**kept, "TILEWISE_CACHE_DIR": os.fspath(tmp_path / "cache"), "TILEWISE_CXX": os.fspath(compiler),
            "COMPILED": os.fspath(tmp_path / "compiled"), "BUILT": os.fspath(ops_file)}


def start(world, wait=0, **more):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(wait)], env={**world, **more}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run(world, wait=0, **more):
    program = start(world, wait, **more)
    out, messages = program.communicate(timeout=300)
    assert program.returncode == 0, messages
    return out.split("\n")[:2], messages


def compilations(world):
    return open(world["COMPILED"]).read().count("compiled") if os.path.exists(world["COMPILED"]) else 0


PYTHON, CPP = ["first False 24.0", "then False 24.0"], ["first True 24.0", "then True 24.0"]


def test_compiled_in_the_background_and_found_again(world):
    said, messages = run(world, wait=120)
    assert said == ["first False 24.0", "then True 24.0"]
    assert messages.count("compiling its C++ ops") == 1 and "TILEWISE_TORCH_CPP=0" in messages
    said, messages = run(world, TILEWISE_CXX="/nonexistent")
    assert said == CPP and messages == "" and compilations(world) == 1


def test_a_program_that_ends_sooner_does_not_end_the_compiler(world):
    said, _ = run(world)
    assert said == PYTHON
    said, messages = run(world, TILEWISE_TORCH_CPP="wait")  # for the compiler of the first
    assert said == CPP and compilations(world) == 1


def test_many_processes_compile_once(world):
    programs = [start(world, wait=120) for _ in range(3)]
    outs = [program.communicate(timeout=300) for program in programs]
    assert [out.split("\n")[1] for out, _ in outs] == ["then True 24.0"] * 3, outs
    assert compilations(world) == 1


def test_turned_off(world):
    said, messages = run(world, TILEWISE_TORCH_CPP="0")
    assert said == PYTHON and messages == "" and compilations(world) == 0


def test_no_compiler(world):
    said, messages = run(world, TILEWISE_CXX="/nonexistent")
    assert said == PYTHON
    assert messages.count("tilewise.torch: ") == 1 and "the ops stay in Python" in messages and "/nonexistent" in messages


def test_a_failure_is_remembered(world, tmp_path):
    said, messages = run(world, FAIL="1", TILEWISE_TORCH_CPP="wait")
    assert said == PYTHON and "the disk is on fire" in messages and compilations(world) == 1
    said, messages = run(world, FAIL="1")
    assert said == PYTHON and "could not be compiled before" in messages and compilations(world) == 1
    (log,) = tmp_path.glob("cache/failed/*/log.txt")
    assert os.fspath(log.parent) in messages and "on fire" in log.read_text()
    again = subprocess.run([sys.executable, "-c", "import tilewise.torch as tt; tt.build_ops()"], env=world)
    assert again.returncode == 0 and compilations(world) == 2
    assert run(world)[0] == CPP


def test_build_ops_raises(world):
    code = ("import tilewise, tilewise.torch as tt\ntry:\n    tt.build_ops()\nexcept tilewise.ToolchainError as error:\n"
            "    assert 'on fire' in str(error)\nelse:\n    raise AssertionError\n")
    done = subprocess.run([sys.executable, "-c", code], env={**world, "FAIL": "1", "TILEWISE_TORCH_CPP": "0"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_cache_that_others_may_write_is_refused(world, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    program = subprocess.run([sys.executable, "-c", "import tilewise.torch._cpp as c; print(c.is_loaded())"], env=world,
                             capture_output=True, text=True)
    assert program.stdout == "False\n" and "chmod" in program.stderr and compilations(world) == 0


def test_what_was_exchanged_is_compiled_again(world, tmp_path):
    run(world, TILEWISE_TORCH_CPP="wait")
    (built,) = tmp_path.glob("cache/v1/*/*/kernel.ext")
    built.write_bytes(built.read_bytes()[:-1] + b"?")
    assert run(world, TILEWISE_TORCH_CPP="wait")[0] == CPP
    assert compilations(world) == 2


def test_a_word_that_makes_no_sense(world):
    done = subprocess.run([sys.executable, "-c", "import tilewise.torch"], env={**world, "TILEWISE_TORCH_CPP": "yes"},
                          capture_output=True, text=True)
    assert done.returncode == 1 and "TILEWISE_TORCH_CPP is 'yes'; need one of 0, 1, wait" in done.stderr
