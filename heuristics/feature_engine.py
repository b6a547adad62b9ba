# SPDX-License-Identifier: MIT
"""The features of GEMM kernels, under the name of the original's module. The library computes them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from tilewise.learning.features import FeatureEngine, GemmUniversalFeatureEngine  # noqa: E402, F401
