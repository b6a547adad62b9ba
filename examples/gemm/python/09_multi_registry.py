# SPDX-License-Identifier: MIT
"""Several registries side by side: each dispatcher chooses from its own kernels and knows nothing of the others."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise


def area(kernel):
    m, n, _ = kernel.config["tile"].split("x")
    return int(m) * int(n)


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--list", action="store_true", help="print the kernels of each registry")
    args = parse(flags)
    rng, checks = np.random.default_rng(9), Checks()
    everything = tilewise.Registry("everything").add_rule_set("tiny", op="gemm", dtype=args.dtype, arch=args.arch)
    middle = sorted(map(area, everything))[len(everything) // 2]
    registries = {"latency": everything.filter(lambda kernel: area(kernel) < middle, "latency"),
                  "throughput": everything.filter(lambda kernel: area(kernel) >= middle, "throughput")}
    checks.that("the parts are the whole", sum(map(len, registries.values())) == len(everything))
    problem = tilewise.Problem("gemm", m=60, n=72, k=48, dtype=args.dtype)
    a, b = random(rng, (60, 48), args.dtype), random(rng, (72, 48), args.dtype)
    chosen = {}
    for name, registry in registries.items():
        if args.list:
            print(name, *(kernel.name for kernel in registry), sep="\n  ")
        dispatcher = tilewise.Dispatcher(args.device, arch=args.arch, registry=registry)
        plan = dispatcher.select(problem)
        if not checks.that(f"{name} of {len(registry)} kernels takes {plan.kernel}", plan.kernel in registry, plan.why):
            continue
        chosen[name] = plan.kernel
        checks.close("its result", dispatcher.run_host(problem, a, b), wide(a) @ wide(b).T, 48)
    checks.that("they choose differently", len(set(chosen.values())) == len(registries))
    merged = tilewise.Registry("merged")
    checks.that("merged again", sum(merged.merge(registry) for registry in registries.values()) == len(everything))
    registries["latency"].clear()
    checks.that("clearing one leaves the others", len(merged) == len(everything) and len(registries["throughput"]) > 0)
    checks.finish()


if __name__ == "__main__":
    run(main)
