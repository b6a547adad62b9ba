# SPDX-License-Identifier: MIT
"""Forward: y from x and w, in two and three dimensions, dense, grouped and depthwise."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

from conv_direction import check_direction
from example import run

import tilewise


def by_name(runner, case):
    return runner.run(case.x, case.w, case.problem)


def by_choice(case):
    return tilewise.conv_forward(case.x, case.w, **case.geometry)


if __name__ == "__main__":
    run(lambda: check_direction(__doc__, "forward", by_name, by_choice))
