# SPDX-License-Identifier: MIT
"""Products of many sizes one after the other, and many of one size in one call."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise

SIZES = [(64, 64, 64), (128, 256, 64), (1, 512, 256), (257, 129, 65), (512, 512, 128)]


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--max-size", type=int, default=512, help="leave out larger sizes (default: 512)")
    flags.add_argument("--batch", type=int, default=4, help="products in one call (default: 4)")
    args = parse(flags)
    rng, checks = np.random.default_rng(2), Checks()
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch)
    for m, n, k in SIZES:
        if max(m, n, k) > args.max_size:
            continue
        problem = tilewise.Problem("gemm", m=m, n=n, k=k, dtype=args.dtype)
        a, b = random(rng, (m, k), args.dtype), random(rng, (n, k), args.dtype)  # rcr: B is stored transposed
        c = dispatcher.run_host(problem, a, b)
        checks.close(f"{m}x{n}x{k} {dispatcher.select(problem).kernel}", c, wide(a) @ wide(b).T, k)

    m, n, k = 48, 40, 56
    batched = tilewise.Problem("gemm", m=m, n=n, k=k, dtype=args.dtype, batch=args.batch)
    a, b = random(rng, (args.batch, m, k), args.dtype), random(rng, (args.batch, n, k), args.dtype)
    checks.close(f"{batched}", dispatcher.run_host(batched, a, b), wide(a) @ wide(b).swapaxes(1, 2), k)
    shared = batched.replace(batch_stride_b=0)  # one B for the whole batch
    checks.close(f"{shared}", dispatcher.run_host(shared, a, b[0]), wide(a) @ wide(b[0]).T, k)
    checks.finish()


if __name__ == "__main__":
    run(main)
