# SPDX-License-Identifier: MIT
"""Configs at random, most of them wrong: each is corrected, or refused with its reason, then built and run on data of its
own.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

from tilewise.ctypes_utils import (GemmRunner, KernelConfig, Validator, auto_correct_kernel_config,
                                   setup_multiple_gemm_dispatchers, validate_kernel_config)


def random_config(rng, dtype, arch):
    pick = lambda *values: values[rng.integers(len(values))]  # noqa: E731
    return KernelConfig(dtype_a=dtype, gfx_arch=arch, tile_m=pick(64, 128), tile_n=pick(64, 128), tile_k=pick(32, 64),
                        wave_m=pick(1, 2, 3), wave_n=pick(1, 2), warp_m=pick(7, 16, 32), warp_n=pick(16, 32),
                        pipeline=pick("mem", "compv3", "compv4"), scheduler=pick("intrawave", "interwave"),
                        epilogue=pick("cshuffle", "default"), pad_k=bool(pick(0, 1)))


def main():
    flags = parser(__doc__, ["fp16", "bf16", "fp32"])
    flags.add_argument("--num-kernels", type=int, default=4, help="configs to try (default: 4)")
    flags.add_argument("--size", type=int, default=128, help="m, n and k (default: 128)")
    flags.add_argument("--rtol", type=float, default=2e-2, help="relative tolerance (default: 0.02)")
    flags.add_argument("--atol", type=float, default=2e-2, help="absolute tolerance (default: 0.02)")
    flags.add_argument("--seed", type=int, default=7, help="of the configs (default: 7)")
    args = parse(flags)
    rng, checks, validator = np.random.default_rng(args.seed), Checks(), Validator(args.rtol, args.atol)
    configs = [random_config(rng, args.dtype, args.arch) for _ in range(args.num_kernels)]
    ready = []
    for config in configs:
        given = validate_kernel_config(config)
        mended, changed, changes = auto_correct_kernel_config(config)
        print(f"{config.tile_str} {config.pipeline}: {len(given.errors)} rules broken, {len(changes)} fields corrected")
        rules, left = ([error.split(":")[0] for error in validate_kernel_config(item).errors] for item in
                       (config, mended))
        checks.that("no rule is broken that was not before", set(left) <= set(rules), ", ".join(left))
        checks.that("what was valid is left alone", not (given and changed))
        if validate_kernel_config(mended):
            ready.append(mended)
    for number, setup in enumerate(setup_multiple_gemm_dispatchers(ready)):
        if not checks.that(f"built {setup.config.name}", setup.success, setup.error):
            continue
        own = np.random.default_rng(number)
        a, b = random(own, (args.size, args.size), args.dtype), random(own, (args.size, args.size), args.dtype)
        result = GemmRunner(setup).run(a, b)
        if checks.that("run", result.success, result.error):
            close, largest, _ = validator.check(result.output, wide(a) @ wide(b))
            checks.that("its result", close, f"largest error {largest:.2e}")
    checks.finish()


if __name__ == "__main__":
    run(main)
