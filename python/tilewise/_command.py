# SPDX-License-Identifier: MIT
"""Where the tilewise command of this package is: what measures and lists is written in C++."""
from __future__ import annotations

import pathlib


def command() -> pathlib.Path:
    """The program, installed with the package or built in its checkout."""
    package = pathlib.Path(__file__).resolve().parent
    places = [package / "bin" / "tilewise", package.parents[1] / "build" / "bin" / "tilewise"]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError("the command was not found at " + " or ".join(map(str, places)) +
                            "; build it with `make build` in a source checkout, or install the package with `pip install .`")
