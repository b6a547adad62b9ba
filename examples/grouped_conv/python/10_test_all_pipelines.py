# SPDX-License-Identifier: MIT
"""Every pipeline in every direction, in two and three dimensions, each case in a process of its own. A pipeline that the
arch does not have is refused, by a rule that is shown.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import conv_sweep
from example import run

PIPELINES = ["basic_v1", "mem", "compv3", "compv4", "compv5", "compv6", "comp_async", "basic_async_v1"]


def main():
    args = conv_sweep.arguments(__doc__, __file__)
    results = conv_sweep.sweep(args, conv_sweep.cases_of(args, [{"pipeline": pipeline} for pipeline in PIPELINES]))
    have = conv_sweep.supported(results, "pipeline")
    for place in args.places:
        print(f"{place[0]} {place[1]}d: {', '.join(p for p in PIPELINES if (*place, p) in have) or 'none'}")
    need = {item for item in conv_sweep.listed(args, "pipeline") if item[-1] in PIPELINES}
    conv_sweep.conclude(results, "pipelines", have, need)


if __name__ == "__main__":
    run(main)
