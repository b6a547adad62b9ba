# SPDX-License-Identifier: MIT
"""Every pipeline in every direction, in two and three dimensions, each case in a process of its own. A pipeline counts as
supported if it runs with one scheduler.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import conv_sweep
from example import run

PIPELINES = ["basic_v1", "mem", "compv3", "compv4", "compv5", "compv6", "comp_async", "basic_async_v1", "preshuffle"]
SCHEDULERS = ["intrawave", "interwave"]
# For each direction and number of dimensions.
EXPECTED = {"cpu-generic": 4, "cpu-avx2": 4, "cpu-avx512": 4, "cpu-amx": 4, "sm_80": 6, "sm_90a": 8}


def main():
    args = conv_sweep.arguments(__doc__, __file__)
    results = conv_sweep.sweep(args, conv_sweep.cases_of(args, conv_sweep.paired(PIPELINES, SCHEDULERS)))
    supported = {(case["variant"], case["ndim_spatial"], case["pipeline"]) for case, outcome in results if outcome == "OK"}
    for place in args.places:
        print(f"{place[0]} {place[1]}d: {', '.join(p for p in PIPELINES if (*place, p) in supported) or 'none'}")
    each = EXPECTED.get(args.arch)
    conv_sweep.conclude(results, "pipelines", len(supported), None if each is None else each * len(args.places))


if __name__ == "__main__":
    run(main)
