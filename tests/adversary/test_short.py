# SPDX-License-Identifier: MIT
"""Random cases on every device that can be tested here, a few thousand in all; `make test-adversary` runs more."""
import argparse
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


def test_cases_are_shared_by_all_that_runs_here():
    cpus, gpus = [("cpu", arch) for arch in run.CPU_ARCHS[:3]], [(gpu, "") for gpu in run.GPUS]
    options = argparse.Namespace(first=7, cases=1000)
    numbers = {arch or device: numbers for device, arch, numbers in run.shared(options, cpus + gpus)}
    assert len(numbers) == 5
    assert sorted(n for _, arch in cpus for n in numbers[arch]) == list(range(7, 1007))
    assert sorted(n for gpu, _ in gpus for n in numbers[gpu]) == list(range(7, 107))
    assert {len(numbers[arch]) for _, arch in cpus} <= {333, 334} and {len(numbers[gpu]) for gpu, _ in gpus} == {50}
    assert [len(each) for _, _, each in run.shared(options, gpus)] == [50, 50]
