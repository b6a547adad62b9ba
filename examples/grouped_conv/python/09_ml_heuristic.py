# SPDX-License-Identifier: MIT
"""How good the ranking is: the kernels that it puts first are measured, and the loss of taking its first is shown. The
ranking is that of a learned model where one is there for the device, else the analytic one; the plan says which.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from conv_reference import forward
from example import Checks, parse, parser, random, run

import tilewise

PROBLEMS = ["conv_fwd:n=1,g=2,c=64,k=64,in=14x14,filter=3x3,pad=1x1", "conv_fwd:n=1,g=1,c=64,k=96,in=14x14,filter=1x1"]


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--top", type=int, default=2, help="how many kernels to measure (default: 2)")
    args = parse(flags)
    rng, checks = np.random.default_rng(9), Checks()
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch)
    for text in PROBLEMS:
        problem = tilewise.Problem(f"{text},dtype={args.dtype}")
        plan = dispatcher.select(problem)
        print(f"{problem}\n  {plan.source}: {plan.why}")
        learned = [item for item in plan.candidates if item.analytic_us is not None]  # a learned model looks at the most likely ones
        ranked = learned or plan.candidates
        best = sorted(item.predicted_us for item in ranked if item.predicted_us is not None)
        checks.that("candidates come in the order of their predicted times",
                    best == [item.predicted_us for item in ranked if item.predicted_us is not None])
        measured = {}
        for candidate in plan.candidates[:args.top]:
            row = dispatcher.bench(problem, kernel=candidate.name).results[0]
            measured[candidate.name] = row.us
            print(f"  {candidate.name}: predicted {candidate.predicted_us or 0:.1f} us, measured {row.us:.1f} us")
        first = plan.candidates[0].name
        print(f"  taking the first costs {measured[first] / min(measured.values()):.2f} times the best of {len(measured)}")
        x, w = (random(rng, problem.operands[name].shape, args.dtype) for name in "ab")
        pad = 1 if "pad=1x1" in text else 0
        for name in measured:
            y = dispatcher.run_host(problem, x, w, kernel=name)
            checks.close(name, y, forward(x, w, 1, pad), problem.flops / y.size / 2)
    checks.finish()


if __name__ == "__main__":
    run(main)
