# SPDX-License-Identifier: MIT
"""A registry of convolution configs as JSON and back, a config from a JSON file, and a heuristic that names kernels by a part
of their names. The file (--config) holds a registry, or a config in the form of tile engines: lists of values, of which every
combination is meant; what the arch does not have is corrected, with a warning, or left out.
"""
import itertools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from conv_reference import forward
from example import Checks, parse, parser, random, run

from tilewise.grouped_conv_utils import (GroupedConvKernelConfig, GroupedConvProblem, GroupedConvRegistry,
                                         validate_grouped_conv_config)

SAMPLE = {
    "variant": "forward", "ndim_spatial": 2, "layout": "nhwgc",
    "tile_config": {"tile_m": [64], "tile_n": [64, 128], "tile_k": [32], "wave_m": [2], "wave_n": [2], "wave_k": [1],
                    "warp_tile_m": [32], "warp_tile_n": [32], "warp_tile_k": [16]},
    "trait_config": {"pipeline": ["compv3"], "scheduler": ["intrawave"], "epilogue": ["cshuffle"]},
}


def read_registry(text, args):
    """A registry of a file's text."""
    data = json.loads(text)
    if "kernels" in data:
        return GroupedConvRegistry.from_json(text)
    lists = {(part, name): values["values"] if isinstance(values, dict) else values
             for part in ("tile_config", "trait_config") for name, values in data[part].items()}
    registry = GroupedConvRegistry("file")
    for combination in itertools.product(*lists.values()):
        config = {"dtype": args.dtype, "arch": args.arch, **data, "tile_config": {}, "trait_config": {}}
        for (part, name), value in zip(lists, combination):
            config[part][name] = value
        registry.add(config)
    return registry


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--output", help="a file to write the registry to (default: none)")
    flags.add_argument("--config", help="a file with configs (default: a sample)")
    flags.add_argument("--workers", type=int, default=0, help="compilers at a time (default: one for each CPU)")
    args = parse(flags)
    rng, checks = np.random.default_rng(6), Checks()
    registry = GroupedConvRegistry("example")
    for variant in ("forward", "bwd_data", "bwd_weight"):
        for ndim in (2, 3):
            registry.add(GroupedConvKernelConfig(variant=variant, ndim_spatial=ndim, dtype=args.dtype, arch=args.arch))
    small = GroupedConvKernelConfig(dtype=args.dtype, arch=args.arch, pipeline="basic_v1")
    registry.add(small)
    registry.print_registry()
    text = registry.to_json()
    if args.output:
        pathlib.Path(args.output).write_text(text)
    copy = GroupedConvRegistry.from_json(text)
    checks.that("read back, it is the same", [config.name for config in copy] == [config.name for config in registry])
    checks.that("three of its kernels go forward", len(copy.filter_by_variant("forward")) == 3)
    checks.that("all are for one arch", len(copy.filter_by_arch(args.arch)) == len(copy))

    given = read_registry(pathlib.Path(args.config).read_text() if args.config else json.dumps(SAMPLE), args)
    given.print_registry()
    usable = [config for config in given if validate_grouped_conv_config(config) and config.arch == args.arch]
    checks.that(f"{len(usable)} of the file's {len(given)} configs are valid here", len(usable) > 0)
    chosen = next((config for config in usable if (config.variant, config.ndim_spatial) == ("forward", 2)), None)

    problem = GroupedConvProblem(N=1, C=16, K=16, G=2, Hi=10, Wi=10, Y=3, X=3, pad_h=1, pad_w=1)
    by_rank, by_name = copy.select(problem), copy.select(problem, heuristic=lambda problem: ["not one", "_basic_v1_"])
    checks.that(f"the library takes {by_rank.name}", by_rank.variant == "forward" and by_rank.ndim_spatial == 2)
    checks.that("the heuristic takes the one it names", by_name.name == small.name)
    x, w = random(rng, problem.input_shape(), args.dtype), random(rng, problem.weight_shape(), args.dtype)
    ready = GroupedConvRegistry("ready")
    for config in filter(None, (by_name, chosen)):
        ready.add(config)
    runners = ready.build(max_workers=args.workers)
    for config in ready:
        result = runners[config.name].run(x, w, problem)
        if checks.that(f"run {config.name}", result.success, result.error):
            checks.close("its result", result.output, forward(x, w, 1, 1), 9 * 8)
    checks.finish()


if __name__ == "__main__":
    run(main)
