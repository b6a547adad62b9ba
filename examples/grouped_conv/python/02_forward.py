# SPDX-License-Identifier: MIT
"""Forward: y from x and w, in two and three dimensions, dense, grouped and depthwise."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from conv_reference import forward
from example import Checks, parse, parser, random, run

import tilewise
from tilewise.grouped_conv_utils import (GpuGroupedConvRunner, GroupedConvKernelConfig, GroupedConvProblem,
                                         setup_multiple_grouped_conv_dispatchers)

# images, channels, filters, groups, input, filter, stride, padding, dilation
CASES = {
    "3x3, two groups": (2, 16, 24, 2, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    "strided and dilated": (1, 12, 12, 3, (11, 10), (3, 3), (2, 1), (1, 2), (1, 2)),
    "depthwise 5x5": (1, 16, 16, 16, (12, 12), (5, 5), (1, 1), (2, 2), (1, 1)),
    "pointwise": (2, 32, 40, 1, (7, 7), (1, 1), (2, 2), (0, 0), (1, 1)),
    "three-dimensional": (1, 8, 12, 2, (5, 6, 4), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
}


def original_problem(case):
    n, c, k, g, size, taps, stride, pad, dilation = case
    fields = {"N": n, "C": c, "K": k, "G": g, "direction": "forward"}
    for names, values in (("Di Hi Wi", size), ("Z Y X", taps), ("stride_d stride_h stride_w", stride),
                          ("pad_d pad_h pad_w", pad), ("dilation_d dilation_h dilation_w", dilation)):
        fields.update(zip(names.split()[3 - len(values):], values))
    return GroupedConvProblem(**fields)


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--workers", type=int, default=0, help="compilers at a time (default: one for each CPU)")
    args = parse(flags)
    rng, checks = np.random.default_rng(2), Checks()
    configs = [GroupedConvKernelConfig(variant="forward", ndim_spatial=ndim, dtype=args.dtype, arch=args.arch)
               for ndim in (2, 3)]
    paths = dict(zip((2, 3), setup_multiple_grouped_conv_dispatchers(configs, max_workers=args.workers)))
    for name, case in CASES.items():
        problem, size = original_problem(case), case[4]
        geometry = dict(zip(("stride", "padding", "dilation"), case[6:]))
        x, w, dy = (random(rng, shape, args.dtype) for shape in
                    (problem.input_shape(), problem.weight_shape(), problem.output_shape()))
        want = forward(x, w, **geometry)
        terms = problem.flops / want.size / 2
        runner = GpuGroupedConvRunner(paths[len(size)])
        result = runner.run(x, w, problem)
        if checks.that(f"{name}, by a named kernel, {result.time_ms:.3f} ms", result.success, result.error):
            checks.close("its result", result.output, want, terms)
        if args.device == "cpu":
            chosen = tilewise.conv_forward(x, w, **geometry)
            checks.close("by the kernel that is chosen", chosen, want, terms)
    checks.finish()


if __name__ == "__main__":
    run(main)
