#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times of kernels by a learned model, under the name of the original's module: Predictor, or as a script what `tilewise predict` does:

    heuristics/predict.py gemm:m=1000,n=512,k=4096,dtype=bf16,layout=rcr --arch sm_90a --top 5
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from tilewise._verbs import run  # noqa: E402  the package of this checkout
from tilewise.predict import Predictor  # noqa: E402, F401  what programs import from here

if __name__ == "__main__":
    sys.exit(run("predict", sys.argv[1:]))
