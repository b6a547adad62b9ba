# SPDX-License-Identifier: MIT
"""NumPy arrays as they come: views with gaps, outputs in place, sums that add up, and a small network of two layers."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise


def main():
    flags = parser(__doc__)
    flags.add_argument("--hidden", type=int, default=96, help="width of the network's hidden layer (default: 96)")
    args = parse(flags)
    if args.device != "cpu":
        flags.error("NumPy arrays are in the memory of the CPU; use --device cpu (torch tensors work on GPUs)")
    rng, checks = np.random.default_rng(5), Checks()
    a, b = random(rng, (40, 64), "fp32"), random(rng, (64, 48), "fp32")
    want = wide(a) @ wide(b)
    checks.close("gemm", tilewise.gemm(a, b, layout="rrr"), want, 64)

    wider = random(rng, (80, 70), "fp32")
    checks.close("a view with gaps, not copied", tilewise.gemm(wider[::2, 3:67], b, layout="rrr"),
                 wide(wider[::2, 3:67]) @ wide(b), 64)
    frame = np.zeros((42, 50), np.float32)
    tilewise.gemm(a, b, layout="rrr", out=frame[1:-1, 1:-1])
    checks.close("into the middle of another array", frame[1:-1, 1:-1], want, 64)
    checks.that("and nowhere else", not frame[0].any() and not frame[:, 0].any())
    total = np.ones((40, 48), np.float32)
    for _ in range(3):
        tilewise.gemm(a, b, layout="rrr", out=total, beta=1.0)
    checks.close("added up three times", total, 1 + 3 * want, 3 * 64)

    x = random(rng, (32, 64), "fp32")
    w1, b1 = random(rng, (args.hidden, 64), "fp32"), random(rng, (args.hidden,), "fp32")
    w2, b2 = random(rng, (10, args.hidden), "fp32"), random(rng, (10,), "fp32")
    hidden = tilewise.gemm(x, w1, bias=b1, activation="relu")  # weights as a layer keeps them: (out, in)
    y = tilewise.gemm(hidden, w2, bias=b2)
    exact = np.maximum(wide(x) @ wide(w1).T + wide(b1), 0)
    checks.close("a hidden layer", hidden, exact, 64)
    checks.close("a network", y, exact @ wide(w2).T + wide(b2), 64 * args.hidden)
    checks.finish()


if __name__ == "__main__":
    run(main)
