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
EXPECTED = {"cpu-generic": 3, "cpu-avx2": 3, "cpu-avx512": 3, "cpu-amx": 3}


def main():
    args = conv_sweep.arguments(__doc__, __file__)
    places = [(direction, ndim) for direction in args.directions for ndim in args.ndim]
    cases = [{"variant": direction, "ndim_spatial": ndim, "dtype": args.dtype, "arch": args.arch, "pipeline": pipeline,
              "scheduler": scheduler} for direction, ndim in places for pipeline in PIPELINES for scheduler in SCHEDULERS]
    results = conv_sweep.sweep(args, cases)
    each = EXPECTED.get(args.arch)
    count = sum(outcome == "OK" for _, outcome in results)
    conv_sweep.conclude(results, "pairs of pipeline and scheduler", count, None if each is None else each * len(places))


if __name__ == "__main__":
    run(main)
