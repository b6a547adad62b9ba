# SPDX-License-Identifier: MIT
"""Whole graphs of a model: tilewise.torch.optimize, and the backend "tilewise" of torch.compile, known to torch by its name once
this is imported."""
from .optimized import Optimized, optimize
from .options import backend, register

register()

__all__ = ["Optimized", "backend", "optimize"]
