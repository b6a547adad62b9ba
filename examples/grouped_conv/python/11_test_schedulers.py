# SPDX-License-Identifier: MIT
"""All eight pipelines with every scheduler, in every direction, each case in a process of its own."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import conv_sweep
from example import run

PIPELINES = ["basic_v1", "mem", "compv3", "compv4", "compv5", "compv6", "comp_async", "basic_async_v1"]
SCHEDULERS = ["intrawave", "interwave", "auto"]


def main():
    args = conv_sweep.arguments(__doc__, __file__)
    results = conv_sweep.sweep(args, conv_sweep.cases_of(args, conv_sweep.paired(PIPELINES, SCHEDULERS)))
    need = {item for item in conv_sweep.listed(args, "pipeline", "scheduler") if item[-2] in PIPELINES}
    conv_sweep.conclude(results, "pairs of pipeline and scheduler", conv_sweep.supported(results, "pipeline", "scheduler"),
                        need)


if __name__ == "__main__":
    run(main)
