#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures kernels of grouped convolutions on many problems, under the name and flags of the original's script:

    grouped_conv_full_benchmark.py configs/forward_bf16.json --arch sm_90a --problems forward_training --csv forward.csv --workers 8
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

from tilewise._verbs import guarded  # noqa: E402  the package of this checkout
from tilewise._original_sweep import benchmark  # noqa: E402

sys.exit(guarded("sweep", lambda: benchmark(sys.argv[1:], "conv", __doc__)))
