# SPDX-License-Identifier: MIT
"""What a repeated call of tilewise.gemm costs beside the kernel, on a product of 2 x 2 x 2.

  python benchmarks/python_call.py [--device cuda]      --device: for torch tensors, where torch is installed

Each figure is the least of many short blocks, so that other work on the machine does not count. "C call" is
tilewise_run called through ctypes with an argument block that is ready: the part that is not Python's.
"""
import argparse
import ctypes
import time

import numpy as np

import tilewise
from tilewise import _entry, _runtime, _structs

CALLS, BLOCKS = 100, 1000


def least_us(call, finish=lambda: None):
    best = float("inf")
    for _ in range(BLOCKS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
        finish()
    return best / CALLS * 1e6


def c_call(a, b, out, address):
    tilewise.gemm(a, b, out=out)
    executable = list(_entry.entries.values())[-1].executable
    operands = _structs.Operands(ctypes.sizeof(_structs.Operands), address(a), address(b), address(out))
    operands.alpha = 1
    block = ctypes.addressof(operands)
    assert _runtime._run(executable._handle, block, None) == 0
    return lambda: _runtime._run(executable._handle, block, None) and operands  # which it keeps alive


def show(name, a, b, out, address, finish=lambda: None):
    bare = least_us(c_call(a, b, out, address), finish)
    for how, call in (("out given", lambda: tilewise.gemm(a, b, out=out)), ("out made", lambda: tilewise.gemm(a, b))):
        us = least_us(call, finish)
        print(f"{name:12} {how:10} {us:6.2f} us a call, C call {bare:5.2f} us, Python {us - bare:5.2f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    arrays = [np.ones((2, 2), np.float32) for _ in range(3)]
    show("numpy", *arrays, lambda x: x.ctypes.data)
    try:
        import torch
    except ImportError:
        return
    tensors = [torch.ones(2, 2, device=device) for _ in range(3)]
    finish = torch.cuda.synchronize if device != "cpu" else lambda: None
    show(f"torch {device}", *tensors, lambda x: x.data_ptr(), finish)


if __name__ == "__main__":
    main()
