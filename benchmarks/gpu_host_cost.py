# SPDX-License-Identifier: MIT
"""Measures the host's cost of a repeated call before the kernel runs: tilewise.gemm, a prepared problem, torch.mm, on a GPU.

Runs in the worker of benchmarks/gpu_gemm.py. A burst is shorter than the driver's queue of launches and begins with an
idle device: in a full queue a call would wait for the GPU and its time would be the kernel's.
"""
import statistics
import time

import torch

import tilewise

PROBLEM = "gemm:m=128,n=128,k=128,dtype=bf16,layout=rcr"
CALLS_A_BURST = 256  # at most 512: the queue holds about 1000
BURSTS, WARM_BURSTS = 100, 5


def burst_us(call) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS_A_BURST):
        call()
    return (time.perf_counter() - start) / CALLS_A_BURST * 1e6


def host_costs(strategy: str, device: str) -> list[dict]:
    prepared = tilewise.prepare(PROBLEM, device=device, strategy=strategy)
    a, b, out = (torch.randn(128, 128, dtype=torch.bfloat16, device=device) for _ in range(3))
    b_as_written = b.t()
    calls = {
        "tilewise.gemm, out given": lambda: tilewise.gemm(a, b, out=out, strategy=strategy),
        "tilewise.gemm, out made": lambda: tilewise.gemm(a, b, strategy=strategy),
        "prepared, out given": lambda: prepared(a, b, out=out),
        "torch.mm, out given": lambda: torch.mm(a, b_as_written, out=out),
        "torch.mm, out made": lambda: torch.mm(a, b_as_written),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for burst in range(WARM_BURSTS + BURSTS):
        for name, call in calls.items():  # they take turns, as other programs on the machine do not
            us = burst_us(call)
            if burst >= WARM_BURSTS:
                times[name].append(us)
    torch.cuda.synchronize()
    return [{"call": name, "median_us": statistics.median(found), "least_us": min(found)} for name, found in times.items()]
