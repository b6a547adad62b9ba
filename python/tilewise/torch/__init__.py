# SPDX-License-Identifier: MIT
"""tilewise for PyTorch: gemm, linear and grouped conv1d/2d/3d with gradients, on ordinary N, C, ... tensors.

    import tilewise.torch as tt
    y = tt.conv2d(x, w, bias, stride=2, padding=1, groups=4)      # as torch.nn.functional.conv2d
    print(tt.replace(model))                                      # the model's convolutions and linears from now on

The operations are torch.library ops (torch.ops.tilewise.*) with gradients of any order and shapes that torch.compile can
work out; they run on torch's current stream and allocate with torch, so that CUDA graphs capture them. Convolutions work on
channels-last memory: other tensors are copied into it first.
"""
from ._functional import conv1d, conv2d, conv3d, gemm, linear
from ._modules import Conv1d, Conv2d, Conv3d, Linear, Report, replace

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear", "Report", "conv1d", "conv2d", "conv3d", "gemm", "linear", "replace"]
