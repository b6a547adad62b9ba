# SPDX-License-Identifier: MIT
"""Times several kernels for each of the three directions, on shapes of residual networks, and checks every result: the kernels
are built in parallel, and the fastest of each problem is shown beside the one that the library would choose. --full takes
the networks' own sizes, the default a quarter of their height and width.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from conv_case import ConvCase
from example import Checks, parse, parser, run

import tilewise
from tilewise.grouped_conv_utils import (GpuGroupedConvRunner, GroupedConvKernelConfig, GroupedConvProblem,
                                         setup_multiple_grouped_conv_dispatchers)

# images, channels, filters, height and width, filter
SHAPES = [(1, 64, 64, 56, 3), (1, 128, 128, 28, 3), (1, 256, 64, 56, 1)]
DIRECTIONS = ["forward", "bwd_data", "bwd_weight"]


def problems_of(args):
    for n, c, k, side, taps in SHAPES[:args.shapes]:
        size = side if args.full else side // 4
        for direction in args.directions:
            yield GroupedConvProblem(N=n, C=c, K=k, G=args.groups, Hi=size, Wi=size, Y=taps, X=taps, pad_h=taps // 2,
                                     pad_w=taps // 2, direction=direction)


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--warmup", type=int, default=3, help="runs that are not timed (default: 3)")
    flags.add_argument("--repeat", type=int, default=5, help="runs that are (default: 5)")
    flags.add_argument("--groups", type=int, default=2, help="groups (default: 2)")
    flags.add_argument("--num-kernels", type=int, default=3, help="kernels for each problem (default: 3)")
    flags.add_argument("--workers", type=int, default=0, help="compilers at a time (default: one for each CPU)")
    flags.add_argument("--directions", nargs="+", choices=DIRECTIONS, default=DIRECTIONS, help="(default: all)")
    flags.add_argument("--shapes", type=int, default=len(SHAPES), help=f"how many shapes (default: {len(SHAPES)})")
    flags.add_argument("--full", action="store_true", help="the networks' own sizes")
    args = parse(flags)
    rng, checks = np.random.default_rng(5), Checks()
    chooser = tilewise.Dispatcher(None, arch=args.arch)
    sweep = [(problem, [item.name for item in chooser.select(problem.problem(args.dtype)).candidates[:args.num_kernels]])
             for problem in problems_of(args)]
    names = sorted({name for _, candidates in sweep for name in candidates})
    configs = [GroupedConvKernelConfig.from_library(tilewise.KernelConfig(name)) for name in names]
    paths = dict(zip(names, setup_multiple_grouped_conv_dispatchers(configs, max_workers=args.workers)))
    checks.that(f"{len(names)} kernels were built", None not in paths.values())
    for problem, candidates in sweep:
        case, times = ConvCase(problem, args.dtype, rng), {}
        print(problem.problem(args.dtype).text)
        for name in candidates:
            result = GpuGroupedConvRunner(paths[name], args.warmup, args.repeat).run(*case.operands, problem)
            if checks.that(f"{name}: {result.time_ms * 1e3:.1f} us, {result.tflops:.4f} TFLOPS", result.success,
                           result.error):
                times[name] = result.time_ms
                case.check(checks, "its result", result.output)
        best = min(times, key=times.get)
        print(f"  fastest: {best}; taking the first, as the library does, costs {times[candidates[0]] / times[best]:.2f} of it")
    checks.finish()


if __name__ == "__main__":
    run(main)
