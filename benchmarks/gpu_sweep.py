# SPDX-License-Identifier: MIT
"""Times many kernels on problems, to fit the model that ranks them (src/select/gpu_cost_model.cpp) and to see what it misses.

  PYTHONPATH=python python3 benchmarks/gpu_sweep.py OUT.jsonl [--problems FILE] [--only REGEX] [--top N] [--others N] ...

For each problem: the model's first N kernels, and others of the default set, picked at random but the same every time. A line of
JSON for each: problem, kernel, predicted_us, us (null where it failed), error (of the norm, beside a product in float64). As in
gpu_gemm.py, operands take turns so that none is in the cache, and the launches of a kernel are one CUDA graph. Prints what the
model's first choice and its best few reach of the fastest, by geometric mean.
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

import tilewise
from gpu_compare import DEVICE, as_written, capture, make_sets, release
from gpu_problems import ROOT, GemmCase, choose_cases, parse_cases, read_peaks
from gpu_report import geomean

FEW = 8  # of the model's best
REPLAY_US = 1000
REPLAYS = 3
MOST_CHECKED_ROWS = 1024


def chosen_kernels(case: GemmCase, top: int, others: int) -> dict[str, float]:
    """Names and predictions, best first."""
    ranked = [candidate for candidate in tilewise.select(case.text, arch="sm_90a").candidates if candidate.predicted_us]
    rest = ranked[top:]
    picked = random.Random(case.text).sample(rest, min(others, len(rest)))
    return {candidate.name: candidate.predicted_us for candidate in ranked[:top] + picked}


def prepare(case: GemmCase, kernel: str):
    try:
        return tilewise.prepare(case.text, device=DEVICE, kernel=kernel)
    except (tilewise.Error, ValueError) as error:
        print(f"{kernel}: {error}", file=sys.stderr)
        return None


def build_all(cases: list[GemmCase], plans: list[dict[str, float]]) -> None:
    """Every kernel once, on all cores."""
    first = {kernel: case for case, plan in zip(cases, plans) for kernel in plan}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda kernel: prepare(first[kernel], kernel), first))


def time_kernel(run, sets, rounds: int, stream) -> float:
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


def sweep_problem(case: GemmCase, plan: dict[str, float], stream, out) -> list[dict]:
    peaks = read_peaks(*torch.cuda.get_device_capability(DEVICE))
    sets = make_sets(case)[:64]
    a, b = as_written(case, sets[0])
    reference = a[:MOST_CHECKED_ROWS].double() @ b.double()
    rounds = max(1, int(REPLAY_US / (len(sets) * max(peaks.roof_us(case), peaks.launch_us))))
    torch.cuda.synchronize()
    results = []
    for kernel, predicted in plan.items():
        result = {"problem": case.text, "kernel": kernel, "predicted_us": predicted, "us": None, "error": None}
        run = prepare(case, kernel)
        if run is not None:
            sets[0].c.fill_(-1)
            torch.cuda.synchronize()
            run(sets[0].a, sets[0].b, out=sets[0].c)
            torch.cuda.synchronize()
            found = sets[0].c[:MOST_CHECKED_ROWS].double()
            result["error"] = ((found - reference).norm() / reference.norm()).item()
            result["us"] = time_kernel(run, sets, rounds, stream)
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
    cases = choose_cases(parse_cases(options.problems.read_text(encoding="utf-8")), options.only, None)[::options.every]
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
