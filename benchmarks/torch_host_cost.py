# SPDX-License-Identifier: MIT
"""Measures the host's cost of a call of tilewise.torch beside torch's own: linear and conv2d without a gradient, with one recorded, and
forward and backward, on problems of a few elements.

  python benchmarks/torch_host_cost.py [--device cuda] [--dtype bfloat16] [--json]     TILEWISE_TORCH_CPP=0: the Python ops

Sides take turns in short blocks, and each figure is the least of its blocks, so that other work on the machine does not
count. On a GPU a block is shorter than the driver's queue of launches and begins with an idle device: the time is the host's
alone. On a CPU it has the kernel in it, on both sides.
"""
import argparse
import json
import time

import torch
import torch.nn.functional as F

import tilewise.torch as tt
from tilewise.torch import _cpp

BLOCKS, CALLS = 300, 60


def block_us(call, synchronize):
    synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def least_us(calls, synchronize):
    """The cost of each call."""
    for call in calls:
        call()
    found = [[block_us(call, synchronize) for call in calls] for _ in range(BLOCKS)]
    return [min(column) for column in zip(*found)]


def problems(device, dtype):
    """(name, functions of torch and of tilewise.torch, operands, further arguments)"""
    def make(*shape):
        return torch.randn(shape, device=device, dtype=dtype)

    last = torch.channels_last
    image, filters = make(1, 16, 8, 8).contiguous(memory_format=last), make(16, 16, 3, 3).contiguous(memory_format=last)
    yield "linear", F.linear, tt.linear, (make(16, 16), make(16, 16), make(16)), ()
    yield "conv2d 3x3", F.conv2d, tt.conv2d, (image, filters, make(16)), (1, 1)
    yield "conv2d 1x1", F.conv2d, tt.conv2d, (image, filters[:, :, :1, :1].contiguous(memory_format=last), make(16)), ()


def without_gradient(function, operands, more):
    def call():
        with torch.no_grad():
            function(*operands, *more)
    return call


def forward_and_backward(function, operands, more):
    dy = torch.ones_like(function(*operands, *more))
    return lambda: torch.autograd.grad(function(*operands, *more), operands, dy)


WAYS = {"no gradient": without_gradient, "recorded": lambda function, operands, more: lambda: function(*operands, *more),
        "forward and backward": forward_and_backward}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.device == "cpu":
        torch.set_num_threads(1)
    synchronize = (lambda: None) if given.device == "cpu" else torch.cuda.synchronize
    rows = []
    for name, theirs, ours, operands, more in problems(given.device, getattr(torch, given.dtype)):
        for way, make in WAYS.items():
            inputs = [x.clone().requires_grad_() for x in operands]
            torchs, mine = least_us([make(theirs, inputs, more), make(ours, inputs, more)], synchronize)
            rows.append({"call": name, "way": way, "torch_us": torchs, "tilewise_us": mine, "ratio": mine / torchs})
    if given.json:
        print(json.dumps({"cpp": _cpp.is_loaded(), "torch": torch.__version__, "rows": rows}))
        return
    print(f"{given.device}, {given.dtype}, torch {torch.__version__}, ops in {'C++' if _cpp.is_loaded() else 'Python'}; "
          "us of the host a call")
    for row in rows:
        print(f"{row['call']:12} {row['way']:22} torch {row['torch_us']:7.2f}   tilewise {row['tilewise_us']:7.2f}   "
              f"{row['ratio']:5.2f} times")


if __name__ == "__main__":
    main()
