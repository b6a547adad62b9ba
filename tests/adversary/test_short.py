# SPDX-License-Identifier: MIT
"""Random cases on every device that can be tested here, a few thousand in all; `make test-adversary` runs more."""
import os
import subprocess
import sys

import pytest

import run

CPU_CASES, GPU_CASES = 2500, 150


@pytest.mark.parametrize("device, arch", run.places())
def test_random_cases(device, arch):
    command = [sys.executable, run.__file__, "--device", device, "--arch", arch, "--cases",
               str(CPU_CASES if device == "cpu" else GPU_CASES), "--gpu-kernels", "6", "--jobs", str(os.cpu_count())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
