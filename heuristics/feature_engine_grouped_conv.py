# SPDX-License-Identifier: MIT
"""The features of kernels of grouped convolutions, under the name of the original's module. The library computes them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from tilewise.learning.features import FeatureEngine, GroupedConvFeatureEngine  # noqa: E402, F401
