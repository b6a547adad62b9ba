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


def is_supported(case):
    """Whether kernels have the case's option: partial sums are backward weight's, this compile-time filter is a plane's, the
    way through shared memory is a GPU's, and merged groups on a GPU are for 16-bit types."""
    on_cpu = case["arch"].startswith("cpu")
    return not (("two_stage" in case and case["variant"] != "bwd_weight")
                or ("ct_filter" in case.get("options", {}) and case["ndim_spatial"] != 2)
                or ("epilogue" in case and on_cpu)
                or ("num_groups_to_merge" in case and case["dtype"] not in ("fp16", "bf16") and not on_cpu))


def main():
    args = conv_sweep.arguments(__doc__, __file__)
    cases = conv_sweep.cases_of(args, OPTIONS)
    results = conv_sweep.sweep(args, cases)
    places = conv_sweep.listed(args)  # those that have kernels of the type at all
    have = {number for number, (_, outcome) in enumerate(results) if outcome == "OK"}
    need = {number for number, case in enumerate(cases)
            if is_supported(case) and (case["variant"], case["ndim_spatial"]) in places}
    conv_sweep.conclude(results, "options", have, need)


if __name__ == "__main__":
    run(main)
