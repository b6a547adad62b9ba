# SPDX-License-Identifier: MIT
"""The common part of examples 02 to 04: one direction on several problems, by a kernel that is named and by the one that is chosen.
An example says how each is called.
"""
import numpy as np
from conv_case import ConvCase
from example import Checks, parse, parser

from tilewise.grouped_conv_utils import (GpuGroupedConvRunner, GroupedConvKernelConfig, GroupedConvProblem,
                                         setup_multiple_grouped_conv_dispatchers)

PROBLEMS = {
    "3x3, two groups": {"N": 2, "C": 16, "K": 24, "G": 2, "Hi": 9, "Wi": 8, "Y": 3, "X": 3, "pad_h": 1, "pad_w": 1},
    "strided and dilated": {"N": 1, "C": 12, "K": 12, "G": 3, "Hi": 11, "Wi": 10, "Y": 3, "X": 3, "stride_h": 2,
                            "pad_h": 1, "pad_w": 2, "dilation_w": 2},
    "depthwise 5x5": {"N": 1, "C": 16, "K": 16, "G": 16, "Hi": 12, "Wi": 12, "Y": 5, "X": 5, "pad_h": 2, "pad_w": 2},
    "pointwise": {"N": 2, "C": 32, "K": 40, "Hi": 7, "Wi": 7, "Y": 1, "X": 1, "stride_h": 2, "stride_w": 2},
    "three-dimensional": {"N": 1, "C": 8, "K": 12, "G": 2, "Di": 5, "Hi": 6, "Wi": 4, "Z": 3, "Y": 3, "X": 3, "pad_d": 1,
                          "pad_h": 1, "pad_w": 1},
}


def check_direction(text, direction, by_name, by_choice):
    """`by_name(runner, case)` runs the kernel of a library, `by_choice(case)` lets the library choose; text is the example's.
    Ends the example."""
    flags = parser(text, ["fp32", "bf16", "fp16"])
    flags.add_argument("--workers", type=int, default=0, help="compilers at a time (default: one for each CPU)")
    args = parse(flags)
    rng, checks = np.random.default_rng(2), Checks()
    configs = [GroupedConvKernelConfig(variant=direction, ndim_spatial=ndim, dtype=args.dtype, arch=args.arch)
               for ndim in (2, 3)]
    paths = dict(zip((2, 3), setup_multiple_grouped_conv_dispatchers(configs, max_workers=args.workers)))
    for name, sizes in PROBLEMS.items():
        case = ConvCase(GroupedConvProblem(**sizes, direction=direction), args.dtype, rng)
        result = by_name(GpuGroupedConvRunner(paths[case.problem.ndim_spatial]), case)
        if checks.that(f"{name}, by a named kernel, {result.time_ms:.3f} ms", result.success, result.error):
            case.check(checks, "its result", result.output)
        if args.device == "cpu":
            case.check(checks, "by the kernel that is chosen", by_choice(case))
    checks.finish()
