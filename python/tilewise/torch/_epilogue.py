# SPDX-License-Identifier: MIT
"""The library's epilogues in torch's words, for where they are not a part of a kernel: a gradient is recorded, or there is
nothing to sum.
"""
from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu, "relu6": F.relu6, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardswish": F.hardswish}


def activate(x: torch.Tensor, activation: str | None, d: torch.Tensor | None = None) -> torch.Tensor:
    """The words of an activation, in their order; add and mul take d."""
    for word in activation.split("+") if activation else ():
        if word in ("add", "mul") and d is not None:
            x = x + d if word == "add" else x * d
        elif word in ACTIVATIONS:
            x = ACTIVATIONS[word](x)
        else:
            raise ValueError(f"activation: {word!r}; need one of {', '.join(ACTIVATIONS)}, or several joined by +")
    return x
