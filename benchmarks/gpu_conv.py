# SPDX-License-Identifier: MIT
"""Compares tilewise's convolutions on torch's CUDA tensors with cuDNN, as torch calls it; `make bench-gpu-conv` runs it.

  PYTHONPATH=python python3 benchmarks/gpu_conv.py [--only REGEX] [--strategy measure|auto|rules] [--markdown FILE] ...

It measures as benchmarks/gpu_gemm.py does (see its head): random data in more memory than the L2 cache has, one CUDA graph
for each side, replayed in turns, results checked before and after. cuDNN searches all its engines (benchmark mode without
a limit) and works on channels-last memory in place; fp32 is true fp32. A ratio is cuDNN's time over ours: above 1, tilewise
is faster. Exits with 1 where a result was wrong or failed.
"""
import argparse
import datetime
import pathlib
import sys

from gpu_child import Child, ChildDied
from gpu_conv_problems import parse_cases
from gpu_gemm import SECONDS_TO_START, WORKER, compare_all, pattern
from gpu_problems import ROOT, choose_cases
from gpu_report import OK, environment_text, geomean, number, ratio_to, table

NAMES = {"conv_fwd": "forward", "conv_bwd_data": "data", "conv_bwd_weight": "weight"}


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=pathlib.Path, default=ROOT / "benchmarks/problems/conv_gpu.txt", metavar="FILE",
                        help="forward problems, one a line, each with its family behind a #")
    parser.add_argument("--strategy", choices=["measure", "auto", "rules"], default="measure",
                        help="how tilewise chooses its kernel (default: measure)")
    parser.add_argument("--only", type=pattern, metavar="REGEX", help="problems whose 'FAMILY TEXT' it is found in")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N of them")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all results, after each problem anew")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE",
                        help="write the tables, as a section of docs/performance/cuda-conv.md")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="for one problem (default: 120)")
    return parser.parse_args(arguments)


def mean(results: list[dict], value) -> float | None:
    return geomean(found for found in map(value, results) if found)


def summary_table(results: list[dict]) -> str:
    """A row for each family and one for all; each direction's speed-up and share of the roof, ours and cuDNN's."""
    families = [*dict.fromkeys(result["family"] for result in results), None]
    rows = []
    for family in families:
        cells = [family or "all"]
        here = [result for result in results if family is None or result["family"] == family]
        for op in NAMES:
            right = [result for result in here if result["op"] == op and result["status"] == OK]
            cells += [number(mean(right, ratio_to)), number(mean(right, lambda r: r["roof"]), 0, 100),
                      number(mean(right, lambda r: r["peer_roof"]), 0, 100)]
        bad = sum(result["status"] != OK for result in here)
        rows.append([*cells, str(bad)])
    titles = ["family"]
    for name in NAMES.values():
        titles += [name, "% roof", "cuDNN %"]
    return table([*titles, "wrong or failed"], rows, 1)


def detail_table(results: list[dict]) -> str:
    rows = []
    for result in results:
        problem = f"`{result['problem']}`"
        if result["status"] != OK:
            rows.append([problem, f"{result['status']}: {result['reason']}".replace("|", "/"), *["-"] * 4])
            continue
        rows.append([problem, f"`{result['kernel']}`", number(result["ours_us"], 1), number(result["peers_us"]["cudnn"], 1),
                     number(ratio_to(result)), number(result["roof"], 0, 100)])
    return table(["problem", "kernel", "us", "cuDNN us", "ratio", "% of roof"], rows, 2)


def markdown(results: list[dict], environment: dict, strategy: str) -> str:
    return "\n".join([
        "## Beside cuDNN", "",
        f"`make bench-gpu-conv`, strategy `{strategy}`; {environment_text(environment)}.", "",
        "Geometric means of cuDNN's time over that of tilewise (**above 1, tilewise is faster**) for each direction, and the",
        "share of the roof that both reach: the larger of arithmetic at the arch file's peak and every tensor moved once.", "",
        summary_table(results), "", "### Every layer", "", detail_table(results), ""])


def main() -> int:
    options = read_options()
    try:
        cases = choose_cases(parse_cases(options.problems.read_text(encoding="utf-8")), options.only, options.limit)
    except (OSError, ValueError) as error:
        print(f"gpu_conv: {options.problems}: {error}", file=sys.stderr)
        return 2
    if not cases:
        print(f"gpu_conv: no problem of {options.problems} is left; see --only and --limit", file=sys.stderr)
        return 2
    with Child(WORKER) as child:
        try:
            child.start(SECONDS_TO_START)
            environment = {"date": datetime.date.today().isoformat(), **child.ask({"ask": "environment"}, SECONDS_TO_START)}
        except ChildDied as death:
            print(f"gpu_conv: {death}; need torch with CUDA, a GPU, and the library (make build)", file=sys.stderr)
            return 2
        print(environment_text(environment), flush=True)
        results = compare_all(child, cases, options, environment)
    for result in results:  # of a child that died
        result.setdefault("op", result["problem"].partition(":")[0])
    print("\n" + summary_table(results), flush=True)
    if options.markdown:
        options.markdown.write_text(markdown(results, environment, options.strategy), encoding="utf-8")
    return 0 if all(result["status"] == OK for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
