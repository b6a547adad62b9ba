# SPDX-License-Identifier: MIT
"""`python -m tilewise`, and the command that `pip install` puts on PATH: the tilewise command, which is a program of its own but for
the verbs that are written in Python."""
from __future__ import annotations

import os
import sys
from typing import NoReturn

from . import _verbs
from ._command import command


def main() -> NoReturn:
    words = sys.argv[1:]
    if words and words[0] in _verbs.VERBS:
        sys.exit(_verbs.main(words))
    try:
        os.execv(command(), ["tilewise", *words])
    except FileNotFoundError as error:
        sys.exit(f"tilewise: {error}")


if __name__ == "__main__":
    main()
