# SPDX-License-Identifier: MIT
"""Times the three directions on shapes of residual networks, and checks every result. --full takes the networks' own sizes,
the default a quarter of their height and width.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from conv_reference import backward_data, backward_weight, forward
from example import Checks, parse, parser, random, run

import tilewise

# images, channels, filters, height and width, filter
SHAPES = [(1, 64, 64, 56, 3), (1, 128, 128, 28, 3), (1, 256, 64, 56, 1)]


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--warmup", type=int, default=2, help="calls that are not timed (default: 2)")
    flags.add_argument("--repeat", type=int, default=5, help="calls that are (default: 5)")
    flags.add_argument("--groups", type=int, default=2, help="groups (default: 2)")
    flags.add_argument("--full", action="store_true", help="the networks' own sizes")
    args = parse(flags)
    rng, checks = np.random.default_rng(5), Checks()
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch)
    for n, c, k, side, taps in SHAPES:
        size = side if args.full else side // 4
        g, pad = args.groups, taps // 2
        x = random(rng, (n, size, size, g, c // g), args.dtype)
        w = random(rng, (g, k // g, taps, taps, c // g), args.dtype)
        dy = random(rng, (n, size, size, g, k // g), args.dtype)
        wanted = {"conv_fwd": (x, w, forward(x, w, 1, pad)),
                  "conv_bwd_data": (dy, w, backward_data(dy, w, (size, size), 1, pad)),
                  "conv_bwd_weight": (dy, x, backward_weight(x, dy, (taps, taps), 1, pad))}
        for op, (a, b, want) in wanted.items():
            problem = tilewise.Problem(op, n=n, g=g, c=c, k=k, filter=f"{taps}x{taps}", pad=f"{pad}x{pad}",
                                       dtype=args.dtype, **{"in": f"{size}x{size}"})
            out, ms = dispatcher.time_host(problem, a, b, warmup=args.warmup, repeat=args.repeat)
            print(f"{problem.text}\n    {dispatcher.select(problem).kernel}: {ms * 1e3:.1f} us, "
                  f"{problem.flops / ms * 1e-9:.4f} TFLOPS")
            checks.close(op, out, want, problem.flops / want.size / 2)
    checks.finish()


if __name__ == "__main__":
    run(main)
