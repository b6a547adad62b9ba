#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The learned choice against the best of measured kernels, under the name of the original's script; `tilewise validate heuristic` does it:

    heuristics/validation/validate_ml_heuristic.py --dtype bf16 --layout rcr --data test.parquet
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from tilewise._verbs import run  # noqa: E402  the package of this checkout

if __name__ == "__main__":
    sys.exit(run("validate", ["heuristic", *sys.argv[1:]]))
