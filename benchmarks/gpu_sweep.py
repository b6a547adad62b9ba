# SPDX-License-Identifier: MIT
"""Times many kernels on problems, to fit the models that rank them (src/family/cuda/block_product_work.cpp) and to see what they miss.

  PYTHONPATH=python python3 benchmarks/gpu_sweep.py OUT.jsonl [--problems FILE] [--only REGEX] [--top N] [--others N] ...

For each problem: the model's first N kernels, and others of the default set, picked at random but the same every time. A line of
JSON for each: problem, kernel, predicted_us, us (null where it failed), error (of the norm, beside a product in float64 or
cuDNN's convolution). A line of the file is one problem, a GEMM or a direction of a layer. As in gpu_gemm.py, operands take
turns so that none is in the cache, and the launches of a kernel are one CUDA graph. Prints what the model's first choice and its
best few reach of the fastest, by geometric mean.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import sys
import time

import torch

import gpu_conv_compare
import gpu_conv_problems
import gpu_gemm_compare
import tilewise
from gpu_compare import DEVICE, Case, Operands, capture, release
from gpu_conv_problems import ConvCase
from gpu_problems import ROOT, choose_cases, parse_case, read_lines, read_peaks
from gpu_report import geomean


FEW = 8  # of the model's best
REPLAY_US = 1000
REPLAYS = 3
MOST_CHECKED_ROWS = 1024  # of a product
MOST_SETS = 64
MOST_CALL_US = 2000


def chosen_kernels(case: Case, top: int, others: int) -> dict[str, float]:
    """Names and predictions, best first."""
    ranked = [candidate for candidate in tilewise.select(case.text, arch="sm_90a").candidates if candidate.predicted_us]
    rest = ranked[top:]
    picked = random.Random(case.text).sample(rest, min(others, len(rest)))
    return {candidate.name: candidate.predicted_us for candidate in ranked[:top] + picked}


def build_all(cases: list[Case], plans: list[dict[str, float]]) -> None:
    """Every kernel once, on all cores."""
    first = {kernel: case for case, plan in zip(cases, plans) for kernel in plan}

    def build(kernel: str) -> None:
        try:
            tilewise.prepare(first[kernel].text, device=DEVICE, kernel=kernel)
        except tilewise.Error:
            pass  # said where it is timed

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(build, first))


def time_call(call) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3


def time_kernel(run, sets, least_us: float, stream) -> float:
    """The median of a few graphs of about REPLAY_US; a call that alone takes longer is timed once."""
    one_us = time_call(lambda: run(sets[0].a, sets[0].b, out=sets[0].c))
    if one_us > MOST_CALL_US:
        return one_us
    rounds = max(1, int(REPLAY_US / (len(sets) * max(least_us, min(one_us / 2, REPLAY_US)))))
    graph = capture(stream, [lambda one=one: run(one.a, one.b, out=one.c) for one in sets], rounds)
    times = []
    with torch.cuda.stream(stream):
        for _ in range(REPLAYS + 1):  # the first hands the graph over
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record(stream)
            graph.replay()
            end.record(stream)
            stream.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / (rounds * len(sets)))
    return sorted(times[1:])[REPLAYS // 2]


def parse_any(text: str, family: str) -> list[Case]:
    return [gpu_conv_problems.parse_case(text, family) if text.startswith("conv") else parse_case(text, family)]


def operands_and_reference(case: Case):
    """Operands that take turns, and the first rows of the result of the first ones."""
    if isinstance(case, ConvCase):
        sets = gpu_conv_compare.make_sets(case)[:MOST_SETS]
        reference = gpu_conv_compare.make_reference(case, sets[0], dtype=None)  # float32 may take longer than all timing
        if case.op == "conv_bwd_weight":  # a prepared problem takes dy first
            sets = [Operands(one.b, one.a, one.c) for one in sets]
        return sets, reference
    sets = gpu_gemm_compare.make_sets(case)[:MOST_SETS]
    a, b = gpu_gemm_compare.as_written(case, sets[0])
    return sets, a[:MOST_CHECKED_ROWS].double() @ b.double()


def sweep_problem(case: Case, plan: dict[str, float], stream, out) -> list[dict]:
    peaks = read_peaks(*torch.cuda.get_device_capability(DEVICE))
    sets, reference = operands_and_reference(case)
    least_us = max(peaks.roof_us(case), peaks.launch_us)
    torch.cuda.synchronize()
    results = []
    for kernel, predicted in plan.items():
        result = {"problem": case.text, "kernel": kernel, "predicted_us": predicted, "us": None, "error": None}
        try:
            run = tilewise.prepare(case.text, device=DEVICE, kernel=kernel)
            sets[0].c.fill_(-1)
            torch.cuda.synchronize()
            run(sets[0].a, sets[0].b, out=sets[0].c)
            torch.cuda.synchronize()
            found = sets[0].c[:len(reference)].double()
            result["error"] = ((found - reference).norm() / reference.norm()).item()
            result["us"] = time_kernel(run, sets, least_us, stream)
        except tilewise.Error as error:
            print(f"FAILED {case.text} {kernel}: {error}", flush=True)
        results.append(result)
        out.write(json.dumps(result) + "\n")
    out.flush()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--problems", type=pathlib.Path, default=ROOT / "benchmarks/problems/gemm_gpu.txt")
    parser.add_argument("--only", metavar="REGEX")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th problem alone")
    parser.add_argument("--top", type=int, default=24)
    parser.add_argument("--others", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    begin = time.monotonic()
    cases = choose_cases(read_lines(options.problems.read_text(encoding="utf-8"), parse_any), options.only, None)[::options.every]
    plans = [chosen_kernels(case, options.top, options.others) for case in cases]
    torch.ones(1, device=DEVICE)
    build_all(cases, plans)
    print(f"{sum(map(len, plans))} times to take, built after {time.monotonic() - begin:.0f} s", flush=True)
    stream, first, few = torch.cuda.Stream(), [], []
    with options.out.open("w", encoding="utf-8") as out:
        for case, plan in zip(cases, plans):
            if time.monotonic() - begin > options.seconds:
                print("the time is up")
                break
            timed = [result for result in sweep_problem(case, plan, stream, out) if result["us"]]
            release()
            if not timed:
                continue
            best = min(timed, key=lambda result: result["us"])
            first.append(best["us"] / timed[0]["us"])
            few.append(best["us"] / min(result["us"] for result in timed[:FEW]))
            print(f"{best['us']:9.2f} us, model {first[-1]:.2f}, best of {FEW} {few[-1]:.2f}, worst error "
                  f"{max(result['error'] for result in timed):.1e}  {case.text}  {best['kernel']}", flush=True)
    if first:
        print(f"the model's choice reaches {100 * geomean(first):.1f} % of the fastest, the best of its first {FEW} "
              f"{100 * geomean(few):.1f} %, over {len(first)} problems in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
