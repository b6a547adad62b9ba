# SPDX-License-Identifier: MIT
"""Times products of several sizes, here and by the library, and checks each result."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise

SIZES = [64, 128, 256]


def main():
    flags = parser(__doc__, ["bf16", "fp16", "fp32"])
    flags.add_argument("--size", type=int, default=0, help="only this size (default: several)")
    flags.add_argument("--warmup", type=int, default=3, help="calls that are not timed (default: 3)")
    flags.add_argument("--iterations", type=int, default=10, help="calls that are (default: 10)")
    args = parse(flags)
    rng, checks = np.random.default_rng(3), Checks()
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch)
    for size in [args.size] if args.size else SIZES:
        problem = tilewise.Problem("gemm", m=size, n=size, k=size, dtype=args.dtype)
        a, b = random(rng, (size, size), args.dtype), random(rng, (size, size), args.dtype)
        out, ms = dispatcher.time_host(problem, a, b, warmup=args.warmup, repeat=args.iterations)
        row = dispatcher.bench(problem).results[0]
        print(f"{size:5} {ms * 1e3:9.1f} us a call; by the library {row.us:9.1f} us, {row.tflops:.3f} TFLOPS, "
              f"{row.gbps:.1f} GB/s, {row.roof:.0%} of the roof")
        checks.close(f"{size}", out, wide(a) @ wide(b).T, size)
    checks.finish()


if __name__ == "__main__":
    run(main)
