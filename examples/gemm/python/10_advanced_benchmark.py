# SPDX-License-Identifier: MIT
"""Shows what decides a timing: warm-up, repeats, cold or warm caches, the clock, the data and the pipeline. Each flag changes what
is measured, and the result is checked whatever they say.
"""
import statistics
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise

FLUSH_BYTES = 64 << 20  # beyond the last cache of most machines


def operands(init, rng, shape, dtype):
    if init == "random":
        return random(rng, shape, dtype)
    like = random(rng, (1,), dtype).dtype
    if init == "linear":
        return (np.arange(np.prod(shape)).reshape(shape) % 7 / 8).astype(like)
    return np.full(shape, 0.5, like)


def main():
    flags = parser(__doc__, ["bf16", "fp32", "fp16"])
    for name, size in (("m", 256), ("n", 192), ("k", 128)):
        flags.add_argument(f"-{name}", type=int, default=size, help=f"(default: {size})")
    flags.add_argument("--warmup", type=int, default=3, help="calls that are not timed (default: 3)")
    flags.add_argument("--repeat", type=int, default=10, help="calls that are (default: 10)")
    flags.add_argument("--flush-cache", action="store_true", help="write 64 MiB of other memory before each call")
    flags.add_argument("--timer", choices=["call", "library"], default="call",
                       help="time calls from Python, or let the library time the kernel (default: call)")
    flags.add_argument("--init", choices=["random", "linear", "constant"], default="random", help="(default: random)")
    flags.add_argument("--pipeline", help="only kernels of this pipeline (default: any)")
    args = parse(flags)
    rng, checks = np.random.default_rng(10), Checks()
    registry = tilewise.Registry("all").add_rule_set(op="gemm", dtype=args.dtype, arch=args.arch)
    if args.pipeline:
        registry = registry.filter(lambda kernel: kernel.config["pipeline"] == args.pipeline, args.pipeline)
        if not len(registry):
            flags.error(f"{args.arch} has no {args.dtype} kernels of pipeline {args.pipeline}")
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch, registry=registry)
    problem = tilewise.Problem("gemm", m=args.m, n=args.n, k=args.k, dtype=args.dtype)
    kernel = dispatcher.prepare(problem).kernel
    if args.pipeline:
        checks.that(f"the pipeline is {args.pipeline}", tilewise.KernelConfig(kernel).pipeline == args.pipeline)
    a = operands(args.init, rng, (args.m, args.k), args.dtype)
    b = operands(args.init, rng, (args.n, args.k), args.dtype)
    if args.timer == "library":
        row = dispatcher.bench(problem, kernel=kernel).results[0]
        out, us, spread = dispatcher.run_host(problem, a, b), row.us, row.spread
    else:
        other, times = np.zeros(FLUSH_BYTES, np.uint8), []
        for number in range(args.warmup + args.repeat):
            if args.flush_cache:
                other += 1
            out, ms = dispatcher.time_host(problem, a, b, warmup=0, repeat=1)
            if number >= args.warmup:
                times.append(ms * 1e3)
        us, spread = statistics.median(times), (max(times) - min(times)) / statistics.median(times)
    print(f"{problem}\n{kernel}\n{us:.1f} us (spread {spread:.0%}), {problem.flops / us * 1e-6:.4f} TFLOPS, "
          f"{problem.bytes / us * 1e-3:.1f} GB/s")
    checks.close("the result", out, wide(a) @ wide(b).T, args.k)
    checks.finish()


if __name__ == "__main__":
    run(main)
