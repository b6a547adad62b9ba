#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures kernels of matrix products on many problems, under the name and flags of the original's script:

    gemm_full_benchmark.py configs/gemm_bf16.json --arch sm_90a --problems gemm_training --csv gemm.csv --workers 8
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from tilewise._verbs import guarded  # noqa: E402  the package of this checkout
from tilewise._original_sweep import benchmark  # noqa: E402

sys.exit(guarded("sweep", lambda: benchmark(sys.argv[1:], "gemm", __doc__)))
