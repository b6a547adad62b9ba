# SPDX-License-Identifier: MIT
"""A convolution as benchmarks/gpu_compare.py measures it: its operands, the reference, our calls and cuDNN's.

Both sides read and write the same memory: torch sees it as channels-last tensors.
"""
import torch

import tilewise
from gpu_compare import DEVICE, DTYPES, Operands, capture, count_sets
from gpu_conv_problems import ConvCase

PEER = "cudnn"


def make_sets(case: ConvCase) -> list[Operands]:
    dtype = DTYPES[case.dtype]
    return [Operands(*(torch.randn(shape, device=DEVICE, dtype=dtype) for shape in case.shapes)) for _ in range(count_sets(case))]


def our_calls(case: ConvCase, strategy: str | None, sets: list[Operands], kernel: str | None = None) -> list:
    options = {"stride": case.stride, "padding": case.pad, "dilation": case.dilation, "strategy": strategy, "kernel": kernel}

    def bind(one: Operands):
        if case.op == "conv_fwd":
            return lambda: tilewise.conv_forward(one.a, one.b, out=one.c, **options)
        if case.op == "conv_bwd_data":
            return lambda: tilewise.conv_backward_data(one.a, one.b, input_size=case.size, out=one.c, **options)
        return lambda: tilewise.conv_backward_weight(one.a, one.b, filter_size=case.filter, out=one.c, **options)

    return [bind(one) for one in sets]


def as_torch(case: ConvCase, tensor: torch.Tensor, kind: str) -> torch.Tensor:
    """The same memory as a channels-last tensor of torch; one spatial dimension becomes two."""
    dims = len(case.size)
    if kind == "w":
        tensor = tensor.reshape(case.groups * case.filters, *case.filter, case.channels)
    else:
        tensor = tensor.reshape(*tensor.shape[:-2], -1)
    tensor = tensor.permute(0, dims + 1, *range(1, dims + 1))
    return tensor.unsqueeze(2) if dims == 1 else tensor


def torch_call(case: ConvCase, one: Operands, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The same convolution by cuDNN, in another type where one is given."""
    kinds = {"conv_fwd": "xwy", "conv_bwd_data": "ywx", "conv_bwd_weight": "xyw"}[case.op]
    a, b, c = (as_torch(case, tensor, kind) for tensor, kind in zip((one.a, one.b, one.c), kinds))
    if dtype is not None:
        a, b, c = a.to(dtype), b.to(dtype), c.to(dtype)
    line = len(case.size) == 1
    stride, pad, dilation = ([first, *values] if line else list(values)
                             for first, values in ((1, case.stride), (0, case.pad), (1, case.dilation)))
    options = (stride, pad, dilation, False, [0] * len(stride), case.groups)
    if case.op == "conv_fwd":
        return torch.ops.aten.convolution(a, b, None, *options)
    if case.op == "conv_bwd_data":
        return torch.ops.aten.convolution_backward(a, c, b, None, *options, [True, False, False])[0]
    return torch.ops.aten.convolution_backward(b, a, c, None, *options, [False, True, False])[1]


def make_reference(case: ConvCase, one: Operands, dtype: torch.dtype | None = torch.float32) -> torch.Tensor:
    """cuDNN's result in a type, None for that of the problem, laid out as ours; its own search is left out for it."""
    kind = {"conv_fwd": "y", "conv_bwd_data": "x", "conv_bwd_weight": "w"}[case.op]
    torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = False, False
    result = torch_call(case, one, dtype)
    dims = len(case.size)
    if dims == 1:
        result = result.squeeze(2)
    return result.permute(0, *range(2, dims + 2), 1).reshape(case.shapes[2] if kind != "w" else case.w_shape).double()


def capture_peers(case: ConvCase, stream: torch.cuda.Stream, sets: list[Operands], reference: torch.Tensor,
                  rounds: int) -> dict[str, torch.cuda.CUDAGraph]:
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0  # cuDNN tries all it has
    torch.backends.cudnn.allow_tf32 = False
    return {PEER: capture(stream, [lambda one=one: torch_call(case, one) for one in sets], rounds)}
