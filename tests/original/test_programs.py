# SPDX-License-Identifier: MIT
"""Programs for the original, written call by call from its documentation, run as they are: only the arch, or for the C
libraries the device, is another. On a machine with a GPU, `make test-gpu` runs them there.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tilewise._compat_device import arch_of

pytestmark = pytest.mark.compiles
HERE = pathlib.Path(__file__).resolve().parent
LIB = pathlib.Path(os.environ.get("TILEWISE_LIBRARY", HERE.parents[1] / "build" / "lib" / "libtilewise.so")).parent
GEMM, CONV, BWDW = (LIB / f"libdispatcher_{name}_lib.so" for name in ("gemm", "conv", "conv_bwdw"))
CPU, EMULATED = "cpu", "emulated:sm_90a"
GPU = os.environ.get("TILEWISE_TEST_DEVICE")  # tools/test_gpu names one
DEVICES = [GPU] if GPU else [CPU, EMULATED]
LIMIT_S = 300


def run(device, *command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TILEWISE_COMPAT_")}
    done = subprocess.run(list(map(os.fspath, command)), env={**environment, "TILEWISE_COMPAT_DEVICE": device},
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["gemm_program.py", "conv_program.py"])
def test_python(device, name):
    directions = ["forward"] if name == "conv_program.py" and device == EMULATED else []  # to save time
    assert run(device, sys.executable, HERE / name, arch_of(device), *directions).endswith("PASS\n")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("arguments", [("gemm_ctypes.py", GEMM), ("conv_ctypes.py", CONV, BWDW)],
                         ids=lambda words: words[0])
def test_ctypes_without_argtypes(device, arguments):
    assert run(device, sys.executable, HERE / arguments[0], *arguments[1:]).endswith("PASS\n")


@pytest.mark.parametrize("device", DEVICES)
def test_gpu_helper(device):
    answer = json.loads(run(device, LIB.parent / "bin" / "gpu_helper", "48", "40", "32", "--validate"))
    assert answer["status"] == "success" and answer["device"] == device and answer["kernel"]
    assert answer["problem"] == {"M": 48, "N": 40, "K": 32} and answer["validation"]["accuracy"] == 100
    assert answer["execution"]["time_ms"] > 0 and answer["execution"]["tflops"] > 0
