# SPDX-License-Identifier: MIT
"""The shortest way: one product. Then several kernels for the same product, built in parallel and each checked."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise
from tilewise.ctypes_utils import GemmRunner, KernelConfig, setup_multiple_gemm_dispatchers


def main():
    flags = parser(__doc__, ["bf16", "fp16", "fp32"])
    flags.add_argument("--size", type=int, default=256, help="m, n and k (default: 256)")
    flags.add_argument("--num-kernels", type=int, default=2, help="how many kernels to try (default: 2)")
    flags.add_argument("--workers", type=int, default=0, help="compilers at a time (default: one for each CPU)")
    args = parse(flags)
    rng, size, checks = np.random.default_rng(1), args.size, Checks()
    a, b = random(rng, (size, size), args.dtype), random(rng, (size, size), args.dtype)
    want = wide(a) @ wide(b)

    problem = tilewise.Problem("gemm", m=size, n=size, k=size, dtype=args.dtype, layout="rrr")
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch)
    print(f"{problem}\n  {dispatcher.select(problem).why}")
    checks.close("the kernel that is chosen", dispatcher.run_host(problem, a, b), want, size)

    names = [item.name for item in dispatcher.select(problem).candidates[:args.num_kernels]]
    configs = [KernelConfig.from_library(tilewise.KernelConfig(name)) for name in names]
    for config in configs:
        config.layout_b = "row"
    for setup in setup_multiple_gemm_dispatchers(configs, verbose=True, max_workers=args.workers):
        if not checks.that(f"set up {setup.config.name}", setup.success, setup.error):
            continue
        result = GemmRunner(setup).run(a, b)
        if checks.that(f"run, {result.time_ms:.3f} ms, {result.tflops:.3f} TFLOPS", result.success, result.error):
            checks.close("its result", result.output, want, size)
    checks.finish()


if __name__ == "__main__":
    run(main)
