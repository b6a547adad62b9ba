# SPDX-License-Identifier: MIT
"""Every scheduler with a few pipelines, in every direction, each case in a process of its own."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import conv_sweep
from example import run

PIPELINES = ["mem", "compv3", "compv4"]
SCHEDULERS = ["intrawave", "interwave", "auto"]
# Pairs of pipeline and scheduler that run, for each direction and number of dimensions.
EXPECTED = {"cpu-generic": 3, "cpu-avx2": 3, "cpu-avx512": 3, "cpu-amx": 3, "sm_80": 3, "sm_90a": 3}


def main():
    args = conv_sweep.arguments(__doc__, __file__)
    results = conv_sweep.sweep(args, conv_sweep.cases_of(args, conv_sweep.paired(PIPELINES, SCHEDULERS)))
    each = EXPECTED.get(args.arch)
    count = sum(outcome == "OK" for _, outcome in results)
    expected = None if each is None else each * len(args.places)
    conv_sweep.conclude(results, "pairs of pipeline and scheduler", count, expected)


if __name__ == "__main__":
    run(main)
