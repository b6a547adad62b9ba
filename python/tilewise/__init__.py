# SPDX-License-Identifier: MIT
"""tilewise: picks the tile kernel for a GEMM or a grouped convolution, says why, builds it once and runs it.

    >>> import tilewise
    >>> c = tilewise.gemm(a, b, layout="rrr", bias=bias, activation="gelu")     # NumPy arrays, torch tensors, ...
    >>> y = tilewise.conv_forward(x, w, stride=2, padding=1)                    # x NHWGC, w GKYXC, y NHWGK
    >>> tilewise.select("gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr", arch="gfx942")

This package is a thin view of libtilewise.so: names, defaults and rules are the library's. Importing it needs the
standard library alone. tilewise.torch has operations for PyTorch, with gradients.
"""
from ._library import (CheckFailedError, DeviceError, InternalError, TilewiseError, ToolchainError, UnsupportedError,
                       UsageError, set_verbose, version)
from ._answers import Bench, Candidate, Check, Kernel, Measurement, OperandSpec, Plan, Rejection, Validation, Violation
from ._conv import conv_backward_data, conv_backward_weight, conv_forward
from ._gemm import gemm
from ._notes import TilewiseWarning
from ._prepared import Prepared, prepare
from ._recording import Recording, recording
from ._runtime import bench
from ._warm import Built, Tuned, build, tune
from .api import find_kernel, kernels, select
from .config import KernelConfig, check
from .dispatcher import Dispatcher
from .problem import Problem
from .registry import Registry

__version__ = version()
Error = TilewiseError  # what every failure of the library is

__all__ = [
    "Bench", "Built", "Candidate", "Check", "CheckFailedError", "DeviceError", "Dispatcher", "Error", "InternalError",
    "Kernel", "KernelConfig", "Measurement", "OperandSpec", "Plan", "Prepared", "Problem", "Recording", "Registry",
    "Rejection", "TilewiseError", "TilewiseWarning", "ToolchainError", "Tuned", "UnsupportedError", "UsageError",
    "Validation", "Violation", "bench", "build", "check", "conv_backward_data", "conv_backward_weight",
    "conv_forward", "find_kernel", "gemm", "kernels", "prepare", "recording", "select", "set_verbose", "tune",
]
