# SPDX-License-Identifier: MIT
"""tilewise: picks the tile kernel for a GEMM or a grouped convolution, and says why.

    >>> import tilewise
    >>> tilewise.select("gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr", arch="gfx942").plan

This package is a thin view of libtilewise.so: names, defaults and rules are the library's. Importing it needs the
standard library alone.
"""
from ._library import (CheckFailedError, DeviceError, InternalError, TilewiseError, ToolchainError, UnsupportedError,
                       UsageError, version)
from .api import Candidate, Check, Kernel, Plan, Rejection, Selection, Violation, check, kernels, select

__version__ = version()

__all__ = [
    "Candidate", "Check", "CheckFailedError", "DeviceError", "InternalError", "Kernel", "Plan", "Rejection",
    "Selection", "TilewiseError", "ToolchainError", "UnsupportedError", "UsageError", "Violation", "check", "kernels",
    "select",
]
