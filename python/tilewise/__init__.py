# SPDX-License-Identifier: MIT
"""tilewise: picks the tile kernel for a GEMM or a grouped convolution, says why, builds it once and runs it.

    >>> import tilewise
    >>> c = tilewise.gemm(a, b, layout="rrr", bias=bias, activation="gelu")     # NumPy arrays, torch tensors, ...
    >>> tilewise.select("gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr", arch="gfx942").plan

This package is a thin view of libtilewise.so: names, defaults and rules are the library's. Importing it needs the
standard library alone.
"""
from ._library import (CheckFailedError, DeviceError, InternalError, TilewiseError, ToolchainError, UnsupportedError,
                       UsageError, version)
from ._conv import conv_backward_data, conv_backward_weight, conv_forward
from ._gemm import gemm
from ._prepared import Prepared, prepare
from ._runtime import Bench, Measurement, OperandSpec, bench
from .api import Candidate, Check, Kernel, Plan, Rejection, Selection, Violation, check, kernels, select

__version__ = version()
Error = TilewiseError  # what every failure of the library is

__all__ = [
    "Bench", "Candidate", "Check", "CheckFailedError", "DeviceError", "Error", "InternalError", "Kernel",
    "Measurement", "OperandSpec", "Plan", "Prepared", "Rejection", "Selection", "TilewiseError", "ToolchainError",
    "UnsupportedError", "UsageError", "Violation", "bench", "check", "conv_backward_data",
    "conv_backward_weight", "conv_forward", "gemm", "kernels", "prepare", "select",
]
