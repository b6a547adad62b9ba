# SPDX-License-Identifier: MIT
"""What a learned choice has to reach."""
from __future__ import annotations

from typing import Any

FORWARD = {"mean": 90.0, "p10": 75.0, "match_within_noise": 70.0}
BACKWARD = {"mean": 85.0, "accuracy": 90.0}
_WORDS = {"mean": "mean efficiency", "p10": "P10 of the efficiency", "match_within_noise": "the best kernel, within the noise",
          "accuracy": "accuracy of predicted times"}


def target(name: str, value: float, least: float) -> dict[str, Any]:
    """A figure in percent that has to be above another."""
    return {"name": name, "value": value, "least": least, "met": bool(value > least)}


def targets_of(op: str, scores: dict[str, Any], of: str = "") -> list[dict[str, Any]]:
    """Of an operation's scores; GEMM has those of the forward convolution."""
    wanted = BACKWARD if op.startswith("conv_bwd") else FORWARD
    return [target(f"{of}{_WORDS[name]}", scores[name], least) for name, least in wanted.items()]
