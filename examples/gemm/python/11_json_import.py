# SPDX-License-Identifier: MIT
"""Configs from a file in the form that tile engines use: lists of values, of which every combination is meant. Each one is
checked; those that are valid are kept, and the first few are built and run.
"""
import itertools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

from tilewise.ctypes_utils import GemmRunner, KernelConfig, setup_multiple_gemm_dispatchers, validate_kernel_config

SAMPLE = {
    "tile_config": {"tile_m": {"values": [64, 128]}, "tile_n": {"values": [64]}, "tile_k": {"values": [32]},
                    "warp_m": {"values": [1, 2]}, "warp_n": {"values": [1]}, "warp_k": {"values": [1]},
                    "warp_tile_m": {"values": [4, 16, 32]}, "warp_tile_n": {"values": [64, 8, 32]},
                    "warp_tile_k": {"values": [1, 16]}},
    "trait_config": {"pipeline": {"values": ["mem", "compv3"]}, "scheduler": {"values": ["intrawave", "interwave"]},
                     "epilogue": {"values": ["default"]}},
}
# In such files "warp" counts waves, and "warp_tile" is the warp tile.
FIELDS = {"warp_m": "wave_m", "warp_n": "wave_n", "warp_k": "wave_k", "warp_tile_m": "warp_m", "warp_tile_n": "warp_n",
          "warp_tile_k": "warp_k"}


def expand(data):
    lists = {**data["tile_config"], **data["trait_config"]}
    values = [item["values"] if isinstance(item, dict) else item for item in lists.values()]
    for combination in itertools.product(*values):
        yield {FIELDS.get(name, name): value for name, value in zip(lists, combination)}


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--config", help="the file (default: a sample)")
    flags.add_argument("--run", type=int, default=2, help="how many to build and run (default: 2)")
    flags.add_argument("--export-cpp", help="write the valid configs to a C++ file")
    args = parse(flags)
    rng, checks = np.random.default_rng(11), Checks()
    data = json.loads(pathlib.Path(args.config).read_text()) if args.config else SAMPLE
    configs = [KernelConfig(dtype_a=args.dtype, gfx_arch=args.arch, **fields) for fields in expand(data)]
    judged = [(config, validate_kernel_config(config)) for config in configs]
    valid = [config for config, checked in judged if checked and not checked.warnings]  # which say that there is no code
    broken = {error.split(":")[0] for _, checked in judged for error in [*checked.errors, *checked.warnings]}
    print(f"{len(configs)} combinations, {len(valid)} valid, with code; the others break {', '.join(sorted(broken)) or 'nothing'}")
    checks.that("some are valid", len(valid) > 0)
    checks.that("no two have one name", len({config.name for config in valid}) == len(valid))
    if args.export_cpp:
        lines = [f'    "{config.name}",' for config in valid]
        pathlib.Path(args.export_cpp).write_text("\n".join(
            ["// Kernels by name; tilewise::KernelConfig parses each.", "inline constexpr const char* kKernels[] = {",
             *lines, "};", ""]))
    for setup in setup_multiple_gemm_dispatchers(valid[:args.run], auto_correct=False):
        if not checks.that(f"built {setup.config.name}", setup.success, setup.error):
            continue
        a, b = random(rng, (70, 50), args.dtype), random(rng, (50, 66), args.dtype)
        result = GemmRunner(setup).run(a, b)
        if checks.that("run", result.success, result.error):
            checks.close("its result", result.output, wide(a) @ wide(b), 50)
    checks.finish()


if __name__ == "__main__":
    run(main)
