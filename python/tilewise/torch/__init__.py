# SPDX-License-Identifier: MIT
"""tilewise for PyTorch: gemm, linear, grouped and transposed convolutions with gradients, on ordinary N, C, ... tensors.

    import tilewise.torch as tt
    y = tt.conv2d(x, w, bias, stride=2, padding=1, groups=4)      # as torch.nn.functional.conv2d
    print(tt.replace(model))                                      # the model's convolutions and linears from now on
    tt.warm(model, example)                                       # all its kernels compiled, on all cores

The operations are torch.library ops (torch.ops.tilewise.*) with gradients of any order and shapes that torch.compile can
work out; they run on torch's current stream and allocate with torch, so that CUDA graphs capture them. Results have the
memory format that torch's have. Kernels read channels-last memory: other tensors are copied into it first.
"""
import importlib
import sys
from typing import Any

from . import _cpp
from ._cpp import build_ops
from ._functional import (conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, gemm,
                          linear)
from ._modules import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Linear
from ._replace import Report, replace, restore
from ._warm import problems, tune, warm

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Linear", "Report",
           "build_ops", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "gemm",
           "linear", "problems", "replace", "restore", "tune", "warm"]
_GRAPH = ["Optimized", "backend", "optimize"]  # they need torch's compiler, which takes a second to import
__all__ += _GRAPH


def __getattr__(name: str) -> Any:
    if name in _GRAPH:
        return getattr(importlib.import_module(".graph", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_cpp.start()
if "torch._dynamo" in sys.modules:
    importlib.import_module(".graph", __name__)
