# SPDX-License-Identifier: MIT
"""Compares tilewise.gemm on torch's CUDA tensors with cuBLAS and cuBLASLt, as torch calls them; `make bench-gpu` runs it.

  PYTHONPATH=python python3 benchmarks/gpu_gemm.py [--only REGEX] [--strategy measure|auto|rules] [--markdown FILE] ...

How it measures:
- Random data (torch.randn). As many sets of operands as exceed 128 MB, twice the L2 cache of an H200, take turns, so that
  no launch finds its operands there; never fewer than two, nor more than 4096 (tiny problems may stay in the cache).
- All launches of one side, over all sets, are one CUDA graph of at least about a millisecond: what calls cost the host
  does not count (--host-cost shows that). The sides' replays alternate, so that clocks and temperature are the same for
  all; before each the GPU spins until the host has handed the graph over. The median replay over its launches counts.
- Our result is checked before the timing, and once more as the timed graph computes it, each time into outputs filled
  with NaN: no NaN may be left in any set, and the first and last set must agree with a product in float64 (float32 where
  that does not fit). A wrong result is counted as such and has no ratio.
- Inputs are made, and the whole device is synchronised, before a side stream touches anything: memory that is freed on
  one stream and used again on another would be a race.
- The peers have torch's defaults, but for fp32, which is true fp32 (allow_tf32 is off). In fp16 and bf16 they may thus
  add parts of a split sum in that type.
- Problems run in a child process, which is started again after a fault or when one takes too long: such a problem has
  failed, and the run goes on.

A ratio is the peer's time over ours: above 1, tilewise is faster. Exits with 1 where a result was wrong or failed.
"""
import argparse
import datetime
import json
import pathlib
import re
import signal
import sys

from gpu_child import Child, ChildDied
from gpu_problems import ROOT, GemmCase, choose_cases, parse_cases
from gpu_report import (FAILED, LINE_TITLE, OK, environment_text, host_cost_table, line_of, markdown, summary_table)

WORKER = [sys.executable, str(ROOT / "benchmarks/gpu_worker.py")]
SECONDS_TO_START = 180  # torch's first import on a fresh machine reads gigabytes


def pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=pathlib.Path, default=ROOT / "benchmarks/problems/gemm_gpu.txt", metavar="FILE",
                        help="problem texts, one a line, each with its family behind a #")
    parser.add_argument("--strategy", choices=["measure", "auto", "rules"], default="measure",
                        help="how tilewise chooses its kernel (default: measure)")
    parser.add_argument("--only", type=pattern, metavar="REGEX", help="problems whose 'FAMILY TEXT' it is found in")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N of them")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all results, after each problem anew")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE",
                        help="write the tables, as a section of docs/performance/cuda-gemm.md")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="for one problem (default: 120)")
    parser.add_argument("--host-cost", action="store_true", help="what a repeated call costs the host, instead")
    return parser.parse_args(arguments)


def write_json(options: argparse.Namespace, content: dict) -> None:
    if options.json:
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def compare_one(child: Child, case: GemmCase, options: argparse.Namespace) -> dict:
    request = {"ask": "compare", "problem": case.text, "family": case.family, "strategy": options.strategy}
    try:
        child.start(SECONDS_TO_START)
        return child.ask(request, options.timeout)
    except ChildDied as death:
        return {"problem": case.text, "family": case.family, "dtype": case.dtype, "status": FAILED, "reason": str(death)}


def compare_all(child: Child, cases: list[GemmCase], options: argparse.Namespace, environment: dict) -> list[dict]:
    results: list[dict] = []
    print(LINE_TITLE, flush=True)
    try:
        for case in cases:
            results.append(compare_one(child, case, options))
            print(line_of(results[-1]), flush=True)
            write_json(options, {"environment": environment, "strategy": options.strategy, "results": results})
    except KeyboardInterrupt:
        print(f"stopped after {len(results)} of {len(cases)} problems", file=sys.stderr)
    return results


def main() -> int:
    options = read_options()
    try:
        cases = choose_cases(parse_cases(options.problems.read_text(encoding="utf-8")), options.only, options.limit)
    except (OSError, ValueError) as error:
        print(f"gpu_gemm: {options.problems}: {error}", file=sys.stderr)
        return 2
    if not cases:
        print(f"gpu_gemm: no problem of {options.problems} is left; see --only and --limit", file=sys.stderr)
        return 2
    with Child(WORKER) as child:
        try:
            child.start(SECONDS_TO_START)
            environment = {"date": datetime.date.today().isoformat(), **child.ask({"ask": "environment"}, SECONDS_TO_START)}
            print(environment_text(environment), flush=True)
            if options.host_cost:
                costs = child.ask({"ask": "host_cost", "strategy": options.strategy}, options.timeout)["costs"]
                print(host_cost_table(costs))
                write_json(options, {"environment": environment, "strategy": options.strategy, "host_cost": costs})
                return 0
        except ChildDied as death:
            print(f"gpu_gemm: {death}; need torch with CUDA, a GPU, and the library (make build)", file=sys.stderr)
            return 2
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time limit's: what was measured is still shown
        results = compare_all(child, cases, options, environment)
        print("\n" + summary_table(results), flush=True)
        if options.markdown:
            options.markdown.write_text(markdown(results, environment, options.strategy), encoding="utf-8")
    return 0 if all(result["status"] == OK for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
