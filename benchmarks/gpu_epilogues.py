# SPDX-License-Identifier: MIT
"""Compares chains of steps that follow a product in one kernel with the plain product and with torch; `make bench-gpu
ARGS=epilogues` runs it.

  PYTHONPATH=python python3 benchmarks/gpu_gemm.py epilogues [--only REGEX] [--limit N] [--strategy auto|measure|rules] ...

How it measures: as benchmarks/gpu_gemm.py does (see its head), all sides of a problem side by side: ours plain and with each
chain, and torch's calls. It differs in this:
- At most 16 sets of operands take turns. Weights are divided by the root of k, so that activations see values about 1.
- Our result of each chain is checked before it is timed, for the first and the last set: against float64, for convolutions
  cuDNN's float32. A wrong one has no ratio.
- The peer of a chain is the fastest of torch's ways to compute it: calls that fuse (addmm, linear, _addmm_activation,
  cudnn_convolution_relu and _add_relu) and the product followed by one kernel a step, which works in place. The gelu of
  _addmm_activation is the approximation by tanh, all others are exact.
- cuBLAS is used as torch does by default; cuDNN searches the first ten of its engines, torch's default in benchmark mode.
- Everything runs in this process: a fault of the device ends the run, and what was measured until then is shown.

"/plain" is our time of a chain over our time of the plain product: 1.00 where the chain costs nothing. A ratio is the peer's
time over ours: above 1, tilewise is faster. "x bytes", of beta and d, is the time they add over that which the reading of
C or D takes at 4.4 TB/s. Exits with 1 where a result was wrong or failed.
"""
import argparse
import datetime
import math
import pathlib
import sys

import gpu_conv_problems
import gpu_problems
from gpu_comparison import pattern, read_cases, write_json
from gpu_conv_problems import ConvCase
from gpu_problems import ROOT, GemmCase, read_lines
from gpu_report import FAILED, OK, WRONG, environment_text, geomean, number, table

PLAIN = "plain"
# A chain is the words of its steps in their order; beta adds 1 times C, d and add one array.
CHAINS = (PLAIN, "bias", "relu", "bias+relu", "bias+gelu", "bias+silu", "beta", "d", "bias+add+relu")
READ_GBPS = 4400
LARGE_K = 2048
GROUPS = (f"gemm k>={LARGE_K}", f"gemm k<{LARGE_K}", "conv", "conv depthwise")
ALL = "all"


def steps_of(chain: str) -> list[str]:
    return [] if chain == PLAIN else chain.split("+")


def chain_text(chain: str) -> str:
    """The fields of a problem's text that say the chain."""
    fields = {PLAIN: "", "beta": ",beta=1", "d": ",d=add"}
    return fields.get(chain, f",epilogue={chain}")


def parse_case(text: str, family: str) -> GemmCase | ConvCase:
    is_conv = text.startswith("conv")
    case = (gpu_conv_problems if is_conv else gpu_problems).parse_case(text, family)
    if case.dtype not in ("bf16", "fp16"):
        raise ValueError(f"{text!r}: dtype={case.dtype}; need bf16 or fp16")
    if is_conv and (case.op != "conv_fwd" or len(case.size) != 2):
        raise ValueError(f"{text!r}: need conv_fwd with two dimensions")
    if not is_conv and (case.layout != "rcr" or case.batch != 1):
        raise ValueError(f"{text!r}: need layout=rcr and no batch")
    return case


def parse_cases(lines: str) -> list[GemmCase | ConvCase]:
    return read_lines(lines, lambda text, family: [parse_case(text, family)])


def group_of(case: GemmCase | ConvCase) -> str:
    if isinstance(case, ConvCase):
        return GROUPS[3] if case.channels == case.filters == 1 else GROUPS[2]
    return GROUPS[0] if case.k >= LARGE_K else GROUPS[1]


def output_bytes(case: GemmCase | ConvCase) -> int:
    return 2 * math.prod(case.y_shape if isinstance(case, ConvCase) else case.stored_shape("c"))


# ---- what is shown ---------------------------------------------------------------------------------------------------
# A result is a dict of one problem and chain: "problem", "family", "group", "chain", "output_bytes" and "status"; with wrong
# and failed a "reason"; with ok "kernel", "error" (of what is allowed), "ours_us", "plain_us" (None where plain is not ok) and
# "peers_us" ({name: us}).


def over_plain(result: dict) -> float | None:
    return result["ours_us"] / result["plain_us"] if result["plain_us"] else None


def best_peer(result: dict) -> tuple[str, float | None]:
    peers = result["peers_us"]
    name = min(peers, key=peers.get, default="no peer")
    return name, peers.get(name)


def ratio(result: dict) -> float | None:
    us = best_peer(result)[1]
    return None if us is None else us / result["ours_us"]


def over_bytes(result: dict) -> float | None:
    """The time that reading C or D adds, in that which its bytes take; of the chains that do nothing else."""
    if result["chain"] not in ("beta", "d") or not result["plain_us"]:
        return None
    return (result["ours_us"] - result["plain_us"]) / (result["output_bytes"] / READ_GBPS / 1e3)


LINE_TITLE = f"{'ours us':>9} {'/plain':>6} {'peer us':>9} {'ratio':>6}  chain, peer, problem, kernel"


def line_of(result: dict) -> str:
    if result["status"] != OK:
        return f"{result['status'].upper():>9}  {result['chain']}  {result['problem']}: {result['reason']}"
    peer, us = best_peer(result)
    return (f"{number(result['ours_us']):>9} {number(over_plain(result)):>6} {number(us):>9} {number(ratio(result)):>6}  "
            f"{result['chain']:<13} {peer:<22} {result['problem']}  {result['kernel']}")


def known(values) -> list[float]:
    return [value for value in values if value is not None]


def chain_row(group: str, results: list[dict]) -> list[str]:
    right = [result for result in results if result["status"] == OK]
    plain, peer, reads = (known(map(value, right)) for value in (over_plain, ratio, over_bytes))
    counts = (sum(result["status"] == status for result in results) for status in (WRONG, FAILED))
    return [group, str(len(results)), number(geomean(plain)), number(max(plain, default=None)), number(geomean(peer)),
            number(min(peer, default=None)), number(math.fsum(reads) / len(reads) if reads else None), *map(str, counts)]


def chain_table(results: list[dict], chain: str) -> str:
    """A row for each kind of problem that there is, and one for all."""
    here = [result for result in results if result["chain"] == chain]
    rows = [chain_row(group, found) for group in GROUPS if (found := [r for r in here if r["group"] == group])]
    titles = ["problems", "cases", "/plain", "worst", "ratio", "least", "x bytes", "wrong", "failed"]
    return table(titles, [*rows, chain_row(ALL, here)], 1)


def tables(results: list[dict]) -> str:
    chains = [chain for chain in CHAINS if any(result["chain"] == chain for result in results)]
    return "\n\n".join(f"### {chain}\n\n{chain_table(results, chain)}" for chain in chains)


def markdown(results: list[dict], environment: dict, strategy: str) -> str:
    return "\n".join([
        "## Steps that follow a product in one kernel", "",
        f"`make bench-gpu ARGS=epilogues`, strategy `{strategy}`; {environment_text(environment)}.", "",
        "\"/plain\" is our time over that of our plain product, \"worst\" the largest. A ratio is the time of torch's",
        "fastest way over ours (**above 1, tilewise is faster**), \"least\" the smallest. \"x bytes\" is the mean time that beta",
        f"or d adds, over that which reading C or D takes at {READ_GBPS / 1000} TB/s. The other means are geometric. How it is",
        "measured is at the head of `benchmarks/gpu_epilogues.py`.", "", tables(results), ""])


# ---- the run ---------------------------------------------------------------------------------------------------------


def read_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu_gemm.py epilogues", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=pathlib.Path, default=ROOT / "benchmarks/problems/epilogues_gpu.txt",
                        metavar="FILE", help="problem texts, one a line, each with its family behind a #")
    parser.add_argument("--strategy", choices=["auto", "measure", "rules"], default="auto",
                        help="how tilewise chooses its kernels (default: auto)")
    parser.add_argument("--only", type=pattern, metavar="REGEX", help="problems whose 'FAMILY TEXT' it is found in")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N of them")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all results, after each problem anew")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the tables")
    return parser.parse_args(arguments)


def compare_all(cases: list, options: argparse.Namespace, environment: dict, compare) -> list[dict]:
    """The results of compare(case, strategy), a list for each problem; ends early where the device no longer works."""
    results: list[dict] = []
    print(LINE_TITLE, flush=True)
    try:
        for case in cases:
            found = compare(case, options.strategy)
            results += found
            print("\n".join(map(line_of, found)), flush=True)
            write_json(options, {"environment": environment, "strategy": options.strategy, "results": results})
    except (KeyboardInterrupt, RuntimeError) as error:
        print(f"gpu_epilogues: stopped: {type(error).__name__} {error}", file=sys.stderr)
        return [*results, {"problem": case.text, "family": case.family, "group": group_of(case), "chain": PLAIN,
                           "output_bytes": output_bytes(case), "status": FAILED, "reason": "the run was stopped"}]
    return results


def run(arguments: list[str]) -> int:
    options = read_options(arguments)
    cases = read_cases("gpu_epilogues", options, parse_cases)
    if not cases:
        return 2
    try:
        from gpu_epilogues_compare import compare, read_environment  # needs torch
        environment = {"date": datetime.date.today().isoformat(), **read_environment()}
    except (ImportError, RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        print(f"gpu_epilogues: {error}; need torch with CUDA, a GPU, and the library (make build)", file=sys.stderr)
        return 2
    print(environment_text(environment), flush=True)
    results = compare_all(cases, options, environment, compare)
    print("\n" + tables(results), flush=True)
    if options.markdown:
        options.markdown.write_text(markdown(results, environment, options.strategy), encoding="utf-8")
    return 0 if all(result["status"] == OK for result in results) else 1
