# SPDX-License-Identifier: MIT
"""One convolution on the GPU: our result checked, then our time and cuDNN's side by side, and the result checked again.

Runs in the worker of benchmarks/gpu_conv.py (gpu_worker.py). Timing, poisoning and what must hold are those of
gpu_compare.py; here is how operands are made and what the peer is called with. Both sides read and write the same memory:
torch sees it as channels-last tensors.
"""
import statistics

import torch

import tilewise
from gpu_compare import (BEYOND_L2_BYTES, DEVICE, DTYPES, LEAST_SETS, MOST_SETS, Operands, capture, count_rounds, fault_of,
                         run_all, time_replays)
from gpu_conv_problems import ConvCase
from gpu_problems import Peaks
from gpu_report import FAILED, OK, WRONG

PEER = "cudnn"


def make_sets(case: ConvCase) -> list[Operands]:
    count = min(MOST_SETS, max(LEAST_SETS, BEYOND_L2_BYTES // case.bytes + 1))
    dtype = DTYPES[case.dtype]
    return [Operands(*(torch.randn(shape, device=DEVICE, dtype=dtype) for shape in case.shapes)) for _ in range(count)]


def our_calls(case: ConvCase, strategy: str, sets: list[Operands]) -> list:
    options = {"stride": case.stride, "padding": case.pad, "dilation": case.dilation, "strategy": strategy}

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
    """What cuDNN computes; in another type where one is given."""
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
    torch.backends.cudnn.benchmark = False
    result = torch_call(case, one, dtype)
    torch.backends.cudnn.benchmark = True
    dims = len(case.size)
    if dims == 1:
        result = result.squeeze(2)
    return result.permute(0, *range(2, dims + 2), 1).reshape(case.shapes[2] if kind != "w" else case.w_shape).double()


def measure(case: ConvCase, strategy: str, peaks: Peaks) -> dict:
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0  # cuDNN tries all it has
    torch.backends.cudnn.allow_tf32 = False
    prepared = tilewise.prepare(case.text, device=DEVICE, strategy=strategy)
    sets = make_sets(case)
    references = {index: make_reference(case, sets[index]) for index in (0, len(sets) - 1)}
    ours = our_calls(case, strategy, sets)
    torch.cuda.synchronize()
    answer = {"kernel": prepared.kernel, "source": prepared.plan.source}
    fault = fault_of(case, sets, references, lambda: run_all(ours))
    if fault:
        return {**answer, "status": WRONG, "reason": f"before timing: {fault} ({prepared.kernel})"}
    rounds = count_rounds(case, peaks, len(sets))
    stream = torch.cuda.Stream()
    graphs = {"ours": capture(stream, ours, rounds)}
    graphs[PEER] = capture(stream, [lambda one=one: torch_call(case, one) for one in sets], rounds)
    times = time_replays(graphs, stream, rounds * len(sets))

    def replay_ours() -> None:
        with torch.cuda.stream(stream):
            graphs["ours"].replay()

    fault = fault_of(case, sets, references, replay_ours)
    if fault:
        return {**answer, "status": WRONG, "reason": f"after timing: {fault} ({prepared.kernel})"}
    us = {name: statistics.median(found) / (rounds * len(sets)) for name, found in times.items()}
    roof_us = peaks.roof_us(case)
    share = {name: roof_us / us[name] if roof_us else None for name in us}
    return {**answer, "status": OK, "ours_us": us["ours"], "peers_us": {PEER: us[PEER]},
            "tflops": case.flops / us["ours"] / 1e6, "roof": share["ours"], "peer_roof": share[PEER]}


def compare(case: ConvCase, strategy: str, peaks: Peaks) -> dict:
    """The result of a problem; a failure is one too."""
    facts = {"problem": case.text, "family": case.family, "dtype": case.dtype}
    try:
        return {**facts, **measure(case, strategy, peaks)}
    except (tilewise.Error, RuntimeError, ValueError, TypeError) as error:  # torch's errors are RuntimeErrors
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return {**facts, "status": FAILED, "reason": f"{type(error).__name__}: {reason}"}
