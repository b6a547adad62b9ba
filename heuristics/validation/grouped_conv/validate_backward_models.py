#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the models of backward convolutions choose for seven problems, under the name of the original's script; `tilewise validate
backward-models` does it:

    heuristics/validation/grouped_conv/validate_backward_models.py --arch sm_90a
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from tilewise._verbs import run  # noqa: E402  the package of this checkout

if __name__ == "__main__":
    sys.exit(run("validate", ["backward-models", *sys.argv[1:]]))
