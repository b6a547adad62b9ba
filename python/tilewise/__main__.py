# SPDX-License-Identifier: MIT
"""`python -m tilewise`, and the command that `pip install` puts on PATH: the tilewise command, which is a program of its own."""
from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    package = pathlib.Path(__file__).resolve().parent
    places = [package / "bin" / "tilewise", package.parents[1] / "build" / "bin" / "tilewise"]
    for place in places:
        if place.is_file():
            os.execv(place, ["tilewise", *sys.argv[1:]])
    sys.exit("tilewise: the command was not found at " + " or ".join(map(str, places)) +
             "; build it with `make build` in a source checkout, or install the package with `pip install .`")


if __name__ == "__main__":
    main()
