# SPDX-License-Identifier: MIT
"""Every option of a convolution's config, in every direction, each case in a process of its own."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import conv_sweep
from example import run

OPTIONS = [
    {}, {"double_smem_buffer": True, "pipeline": "compv4"}, {"num_groups_to_merge": 2}, {"split_image": True},
    {"explicit_gemm": True}, {"two_stage": True}, {"pad_m": False, "pad_n": False, "pad_k": False},
    {"options": {"split_k": 2}}, {"options": {"split_k": 2}, "two_stage": True}, {"options": {"specialization": "3x3"}},
    {"options": {"specialization": "1x1"}}, {"options": {"specialization": "depthwise"}},
    {"options": {"ct_filter": "3x3"}}, {"epilogue": "cshuffle"},
]
# How many of them run, by the kind of arch, the direction and the dimensions.
EXPECTED = {"cpu": {("forward", 2): 9, ("forward", 3): 8, ("bwd_data", 2): 9, ("bwd_data", 3): 8, ("bwd_weight", 2): 9,
                    ("bwd_weight", 3): 10},
            "sm_90a": {("forward", 2): 10, ("forward", 3): 8, ("bwd_data", 2): 10, ("bwd_data", 3): 8, ("bwd_weight", 2): 11,
                       ("bwd_weight", 3): 10}}


def main():
    args = conv_sweep.arguments(__doc__, __file__)
    results = conv_sweep.sweep(args, conv_sweep.cases_of(args, OPTIONS))
    count = sum(outcome == "OK" for _, outcome in results)
    table = EXPECTED.get(args.arch.split("-")[0])
    conv_sweep.conclude(results, "options", count, None if table is None else sum(table[place] for place in args.places))


if __name__ == "__main__":
    run(main)
