# SPDX-License-Identifier: MIT
"""Every type and layout on odd sizes against a product in float64, and proof that the checks would see an error: a wrong
element, a NaN and a transposed result must all fail.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import DTYPES, Checks, parse, parser, random, run, wide

import tilewise

M, N, K = 37, 53, 71
LAYOUTS = ["rcr", "rrr", "crr", "ccr", "rcc"]


def stored(letter, x):
    return np.ascontiguousarray(x if letter == "r" else x.T)


def main():
    flags = parser(__doc__)
    flags.add_argument("--layout", choices=LAYOUTS, help="only this one (default: all)")
    args = parse(flags)
    rng, checks = np.random.default_rng(4), Checks()
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch, strategy="first-fit")
    for dtype in DTYPES:
        for layout in [args.layout] if args.layout else LAYOUTS:
            a, b = random(rng, (M, K), dtype), random(rng, (K, N), dtype)
            problem = tilewise.Problem("gemm", m=M, n=N, k=K, dtype=dtype, layout=layout)
            c = dispatcher.run_host(problem, stored(layout[0], a), stored(layout[1], b))
            checks.close(f"{dtype} {layout}", c if layout[2] == "r" else c.T, wide(a) @ wide(b), K)
    checks.that("the library's own check", bool(dispatcher.validate(problem)))

    seen = Checks()
    print("these must fail:")
    want = wide(a) @ wide(b)
    for label, spoil in (("one element", lambda x: x.__setitem__((3, 5), x[3, 5] + 1)),
                         ("a NaN", lambda x: x.__setitem__((3, 5), np.nan))):
        spoilt = want.astype(np.float32)
        spoil(spoilt)
        seen.close(label, spoilt, want, K)
    seen.close("transposed", want.T.astype(np.float32), want, K)
    checks.that("the checks see errors", seen.failed == seen.count == 3)
    checks.finish()


if __name__ == "__main__":
    run(main)
