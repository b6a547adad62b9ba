# SPDX-License-Identifier: MIT
"""One problem on the GPU: our result checked, then ours and the peers' times side by side, and the result checked again.

Runs in the worker (gpu_worker.py) of benchmarks/gpu_gemm.py, whose head says how it measures, and of gpu_conv.py. What a GEMM
and a convolution do in their own way is in gpu_gemm_compare.py and gpu_conv_compare.py, here the `kind`: make_sets,
make_reference, our_calls and capture_peers. What must hold: whatever a side stream touches is made, and the device
synchronised, before; nothing is freed until the device is done with it.
"""
import dataclasses
import gc
import math
import statistics
import time

import torch

import tilewise
from gpu_conv_problems import ConvCase
from gpu_problems import GemmCase, Peaks
from gpu_report import FAILED, OK, WRONG

Case = GemmCase | ConvCase

DEVICE = "cuda:0"
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn,
          "int8": torch.int8}
UNWRITTEN = -(2**31)  # what no sum of int8 products that is compared here comes to

BEYOND_L2_BYTES = 128 << 20  # twice an H200's L2 cache
LEAST_SETS, MOST_SETS = 2, 4096
LEAST_REPLAY_US = 1000  # so that what surrounds a replay does not count
SECONDS_TIMED = 0.4  # of a problem, all sides together
LEAST_REPLAYS, MOST_REPLAYS = 7, 31
WARM_CALLS = 3
# The GPU spins so long before a replay that the host has handed the whole graph over when its time begins.
HEAD_START_CYCLES, HEAD_START_CYCLES_A_LAUNCH = 100_000, 300

# The error that is allowed: two roundings of the output, and for each of k steps of the accumulation in fp32 a part of
# a typical partial sum. Tensor cores cut bits off where fp32 units round.
OUTPUT_ROUNDING = {"fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7, "fp8": 2.0**-10, "int8": 0}
ACCUMULATION_A_STEP = {"fp32": 2.0**-20, "fp16": 2.0**-18, "bf16": 2.0**-18, "fp8": 2.0**-12, "int8": 0}
FAST_FACTOR = 8  # 8-bit floats that are never added up in fp32


@dataclasses.dataclass
class Operands:
    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor


def count_sets(case: Case) -> int:
    return min(MOST_SETS, max(LEAST_SETS, BEYOND_L2_BYTES // case.bytes + 1))


def count_rounds(case: Case, peaks: Peaks, sets: int) -> int:
    return math.ceil(LEAST_REPLAY_US / (sets * max(peaks.roof_us(case), peaks.launch_us)))


def poison(c: torch.Tensor) -> None:
    c.fill_(math.nan if c.is_floating_point() else UNWRITTEN)


def is_poisoned(c: torch.Tensor) -> torch.Tensor:
    return (c.isnan() if c.is_floating_point() else c == UNWRITTEN).any()


def fault_of(case: Case, sets: list[Operands], references: dict[int, torch.Tensor], run) -> str | None:
    """Runs into outputs filled with NaN; says what is wrong with them, or None."""
    for one in sets:
        poison(one.c)
    torch.cuda.synchronize()
    run()
    torch.cuda.synchronize()
    unwritten = int(torch.stack([is_poisoned(one.c) for one in sets]).sum())
    if unwritten:
        return f"unwritten elements in {unwritten} of {len(sets)} outputs"
    for index, reference in references.items():
        error = (sets[index].c.to(reference.dtype) - reference).abs()
        a_step = ACCUMULATION_A_STEP[case.dtype] * (FAST_FACTOR if case.math == "fast" else 1)
        excess = error - OUTPUT_ROUNDING[case.dtype] * reference.abs() - a_step * case.k
        bad = int((~(excess <= 0)).sum())
        if bad:
            return f"{bad} of {error.numel()} values of set {index} are wrong, the largest error is {error.max().item():.3g}"
    return None


def run_all(calls: list) -> None:
    for call in calls:
        call()


def capture(stream: torch.cuda.Stream, calls: list, rounds: int) -> torch.cuda.CUDAGraph:
    """All launches of one side as one graph."""
    with torch.cuda.stream(stream):
        run_all(calls[:WARM_CALLS])  # handles and workspaces of this stream are made now
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(rounds):
            run_all(calls)
    torch.cuda.synchronize()
    return graph


def time_replays(graphs: dict[str, torch.cuda.CUDAGraph], stream: torch.cuda.Stream, launches: int) -> dict[str, list[float]]:
    """Microseconds of each replay; the sides take turns."""
    head_start = HEAD_START_CYCLES + HEAD_START_CYCLES_A_LAUNCH * launches
    events: dict[str, list] = {name: [] for name in graphs}

    def take_turns() -> None:
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(head_start)
            start.record(stream)
            graph.replay()
            end.record(stream)
            events[name].append((start, end))

    with torch.cuda.stream(stream):
        take_turns()  # hands the graphs over to the device
        torch.cuda.synchronize()
        begin = time.perf_counter()
        take_turns()
        torch.cuda.synchronize()
        replays = int(SECONDS_TIMED / (time.perf_counter() - begin))
        for found in events.values():
            found.clear()
        for _ in range(min(MOST_REPLAYS, max(LEAST_REPLAYS, replays))):
            take_turns()
    torch.cuda.synchronize()
    return {name: [start.elapsed_time(end) * 1e3 for start, end in found] for name, found in events.items()}


def measure(case: Case, kind, strategy: str, peaks: Peaks) -> dict:
    prepared = tilewise.prepare(case.text, device=DEVICE, strategy=strategy)
    sets = kind.make_sets(case)
    references = {index: kind.make_reference(case, sets[index]) for index in (0, len(sets) - 1)}
    ours = kind.our_calls(case, strategy, sets)
    torch.cuda.synchronize()
    answer = {"kernel": prepared.kernel, "source": prepared.plan.source}
    fault = fault_of(case, sets, references, lambda: run_all(ours))
    if fault:
        return {**answer, "status": WRONG, "reason": f"before timing: {fault} ({prepared.kernel})"}
    rounds = count_rounds(case, peaks, len(sets))
    launches = rounds * len(sets)
    stream = torch.cuda.Stream()
    graphs = {"ours": capture(stream, ours, rounds)}
    modelled = tilewise.prepare(case.text, device=DEVICE, strategy="rules").kernel  # what the model chooses unmeasured
    if modelled != prepared.kernel:
        graphs["model"] = capture(stream, kind.our_calls(case, None, sets, modelled), rounds)
    peers = kind.capture_peers(case, stream, sets, references[0], rounds)
    times = time_replays(graphs | peers, stream, launches)

    def replay_ours() -> None:
        with torch.cuda.stream(stream):
            graphs["ours"].replay()

    fault = fault_of(case, sets, references, replay_ours)
    if fault:
        return {**answer, "status": WRONG, "reason": f"after timing: {fault} ({prepared.kernel})"}
    us = {name: statistics.median(found) / launches for name, found in times.items()}
    roof_us = peaks.roof_us(case)
    return {**answer, "status": OK, "ours_us": us["ours"], "peers_us": {name: us[name] for name in peers},
            "model_us": us.get("model", us["ours"]), "model_kernel": modelled,
            "tflops": case.flops / us["ours"] / 1e6, "roof": roof_us / us["ours"] if roof_us else None,
            "sets": len(sets), "launches": launches, "replays": len(times["ours"])}


def compare(case: Case, kind, strategy: str, peaks: Peaks) -> dict:
    """The result of a problem; a failure is one too."""
    facts = {"problem": case.text, "family": case.family, "dtype": case.dtype}
    try:
        return {**facts, **measure(case, kind, strategy, peaks)}
    except (tilewise.Error, RuntimeError, ValueError, TypeError) as error:  # torch's errors are RuntimeErrors
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return {**facts, "status": FAILED, "reason": f"{type(error).__name__}: {reason}"}


def release() -> None:
    """Gives what a problem used back to the device, where the library's own tensors need room. Fails after a fault."""
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
