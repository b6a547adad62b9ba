# SPDX-License-Identifier: MIT
"""Rankings of one's own: a function gets the candidates with the times that the library predicts and says which it wants."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise

SIZES = [(32, 32, 256), (512, 512, 64), (1, 1024, 128)]


def tile(name):
    return [int(part) for part in tilewise.KernelConfig(name).tile.split("x")]


# Each gives a number; the kernel with the least is taken.
STRATEGIES = {
    "size": lambda name, predicted_us: tile(name)[0] * tile(name)[1],
    "compute": lambda name, predicted_us: -tile(name)[0] * tile(name)[1],
    "memory": lambda name, predicted_us: -tile(name)[2],
    "latency": lambda name, predicted_us: predicted_us if predicted_us is not None else float("inf"),
}


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--strategy", choices=STRATEGIES, help="only this one (default: all)")
    args = parse(flags)
    rng, checks = np.random.default_rng(8), Checks()
    pool = tilewise.Registry("pool").add_rule_set("tiny", op="gemm", dtype=args.dtype, arch=args.arch)
    for strategy in [args.strategy] if args.strategy else STRATEGIES:
        asked = []

        def rank(problem, names, predicted_us):
            asked.append(problem)
            order = sorted(zip(names, predicted_us), key=lambda item: STRATEGIES[strategy](*item))
            return [name for name, _ in order]

        dispatcher = tilewise.Dispatcher(args.device, arch=args.arch, registry=pool, rank=rank)
        for m, n, k in SIZES:
            problem = tilewise.Problem("gemm", m=m, n=n, k=k, dtype=args.dtype)
            plan = dispatcher.select(problem)
            best = min(plan.candidates, key=lambda item: STRATEGIES[strategy](item.name, item.predicted_us))
            score = STRATEGIES[strategy]
            checks.that(f"{strategy}, {m}x{n}x{k}: {plan.kernel}", plan.source == "callback" and score(
                plan.kernel, next(c.predicted_us for c in plan.candidates if c.name == plan.kernel)) == score(
                    best.name, best.predicted_us))
            a, b = random(rng, (m, k), args.dtype), random(rng, (n, k), args.dtype)
            checks.close("its result", dispatcher.run_host(problem, a, b), wide(a) @ wide(b).T, k)
        checks.that("the function was asked", problem.text in asked)
    checks.finish()


if __name__ == "__main__":
    run(main)
