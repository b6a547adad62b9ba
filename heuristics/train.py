#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a model of kernel selection, under the name and flags of the original's script; `tilewise train` does it:

    heuristics/train.py --data_dir data --out_dir models --op gemm_universal --dtype bf16 --arch sm_90a
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from tilewise._verbs import run  # noqa: E402  the package of this checkout

if __name__ == "__main__":
    sys.exit(run("train", sys.argv[1:]))
