# SPDX-License-Identifier: MIT
"""Measures what a repeated call of tilewise.gemm or conv_forward costs beside the kernel, on operands of a few elements.

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

CALLS, BLOCKS = 100, 500


def least_us(call, finish=lambda: None):
    best = float("inf")
    for _ in range(BLOCKS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
        finish()
    return best / CALLS * 1e6


def c_call(function, a, b, out, address):
    function(a, b, out=out)
    executable = list(_entry.entries.values())[-1].executable
    operands = _structs.Operands(ctypes.sizeof(_structs.Operands), address(a), address(b), address(out))
    operands.alpha = 1
    block = ctypes.addressof(operands)
    assert _runtime._run(executable._handle, block, None) == 0
    return lambda: _runtime._run(executable._handle, block, None) and operands  # which it keeps alive


def show(name, function, a, b, out, address, finish=lambda: None):
    bare = least_us(c_call(function, a, b, out, address), finish)
    for how, call in (("out given", lambda: function(a, b, out=out)), ("out made", lambda: function(a, b))):
        us = least_us(call, finish)
        print(f"{name:12} {function.__name__:13} {how:10} {us:6.2f} us a call, C call {bare:5.2f} us, "
              f"Python {us - bare:5.2f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    shapes = {tilewise.gemm: [(2, 2)] * 3, tilewise.conv_forward: [(1, 1, 1, 1, 2), (1, 2, 1, 1, 2), (1, 1, 1, 1, 2)]}
    for function, sizes in shapes.items():
        show("numpy", function, *(np.ones(size, np.float32) for size in sizes), lambda x: x.ctypes.data)
    try:
        import torch
    except ImportError:
        return
    finish = torch.cuda.synchronize if device != "cpu" else lambda: None
    for function, sizes in shapes.items():
        tensors = [torch.ones(size, device=device) for size in sizes]
        try:
            show(f"torch {device}", function, *tensors, lambda x: x.data_ptr(), finish)
        except tilewise.UnsupportedError as error:
            print(f"torch {device}: {error}")


if __name__ == "__main__":
    main()
