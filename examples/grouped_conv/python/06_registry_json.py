# SPDX-License-Identifier: MIT
"""A registry of convolution configs as JSON and back, and a heuristic that names kernels exactly."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from conv_reference import forward
from example import Checks, parse, parser, random, run

from tilewise.grouped_conv_utils import GroupedConvKernelConfig, GroupedConvProblem, GroupedConvRegistry


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--output", help="a file to write the registry to (default: none)")
    args = parse(flags)
    rng, checks = np.random.default_rng(6), Checks()
    registry = GroupedConvRegistry("example")
    for variant in ("forward", "bwd_data", "bwd_weight"):
        for ndim in (2, 3):
            registry.add(GroupedConvKernelConfig(variant=variant, ndim_spatial=ndim, dtype=args.dtype, arch=args.arch))
    small = GroupedConvKernelConfig(dtype=args.dtype, arch=args.arch, pipeline="basic_v1")
    registry.add(small)
    registry.print()
    text = registry.to_json()
    if args.output:
        pathlib.Path(args.output).write_text(text)
    copy = GroupedConvRegistry.from_json(text)
    checks.that("read back, it is the same", [config.name for config in copy] == [config.name for config in registry])
    checks.that("three of its kernels go forward", len(copy.filter_by_variant("forward")) == 3)
    checks.that("all are for one arch", len(copy.filter_by_arch(args.arch)) == len(copy))

    problem = GroupedConvProblem(N=1, C=16, K=16, G=2, Hi=10, Wi=10, Y=3, X=3, pad_h=1, pad_w=1)
    by_rank, by_name = copy.select(problem), copy.select(problem, heuristic=lambda problem: ["not one", small.name])
    checks.that(f"the library takes {by_rank.name}", by_rank.variant == "forward" and by_rank.ndim_spatial == 2)
    checks.that("the heuristic takes the one it names", by_name.name == small.name)
    x, w = random(rng, problem.input_shape(), args.dtype), random(rng, problem.weight_shape(), args.dtype)
    result = copy.build()[by_name.name].run(x, w, problem)
    if checks.that("run", result.success, result.error):
        checks.close("its result", result.output, forward(x, w, 1, 1), 9 * 8)
    checks.finish()


if __name__ == "__main__":
    run(main)
