#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Choice and best kernel of a few training shapes, measured again, under the name of the original's script; `tilewise validate
training-shapes` does it:

    heuristics/validation/grouped_conv/validate_training_shapes.py --count 5 --op grouped_conv_forward --device cuda:0
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from tilewise._verbs import run  # noqa: E402  the package of this checkout

if __name__ == "__main__":
    sys.exit(run("validate", ["training-shapes", *sys.argv[1:]]))
