# SPDX-License-Identifier: MIT
"""How good the ranking is: the kernels that it puts first are measured, and the loss of taking its first is shown. The
ranking is that of a learned model where one is there for the device, else the analytic one; the plan says which.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise

SIZES = [(64, 96, 128), (1, 512, 256), (200, 33, 64)]


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16", "fp8", "int8"])
    flags.add_argument("--top", type=int, default=2, help="how many kernels to measure (default: 2)")
    flags.add_argument("--no-run", action="store_true", help="rank only, for an arch that need not be here")
    args = parse(flags)
    rng, checks = np.random.default_rng(9), Checks()
    dispatcher = tilewise.Dispatcher(None if args.no_run else args.device, arch=args.arch)
    for m, n, k in SIZES:
        problem = tilewise.Problem("gemm", m=m, n=n, k=k, dtype=args.dtype)
        plan = dispatcher.select(problem)
        print(f"{problem}\n  {plan.source}: {plan.why}")
        learned = [item for item in plan.candidates if item.analytic_us is not None]  # a learned model looks at the most likely ones
        predicted = [item.predicted_us for item in learned or plan.candidates if item.predicted_us is not None]
        checks.that("candidates come in the order of their predicted times", predicted == sorted(predicted))
        if args.no_run:
            continue
        a, b = random(rng, (m, k), args.dtype), random(rng, (n, k), args.dtype)
        measured = {}
        for candidate in plan.candidates[:args.top]:
            measured[candidate.name] = dispatcher.bench(problem, kernel=candidate.name).results[0].us
            print(f"  {candidate.name}: predicted {candidate.predicted_us or 0:.1f} us, measured "
                  f"{measured[candidate.name]:.1f} us")
            checks.close("its result", dispatcher.run_host(problem, a, b, kernel=candidate.name), wide(a) @ wide(b).T, k)
        loss = measured[plan.candidates[0].name] / min(measured.values())
        print(f"  taking the first costs {loss:.2f} times the best of {len(measured)}")
    checks.finish()


if __name__ == "__main__":
    run(main)
