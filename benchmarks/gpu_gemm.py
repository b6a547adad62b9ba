# SPDX-License-Identifier: MIT
"""Compares tilewise.gemm on torch's CUDA tensors with cuBLAS and cuBLASLt, as torch calls them; `make bench-gpu` runs it.

  PYTHONPATH=python python3 benchmarks/gpu_gemm.py [--only REGEX] [--strategy measure|auto|rules] [--markdown FILE] ...
  PYTHONPATH=python python3 benchmarks/gpu_gemm.py epilogues ...  (steps that follow a product: benchmarks/gpu_epilogues.py)

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
import sys

import gpu_epilogues
from gpu_child import Child
from gpu_comparison import make_parser, run, write_json
from gpu_problems import parse_cases
from gpu_report import host_cost_table, markdown, summary_table


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = make_parser(__doc__, "gemm_gpu.txt")
    parser.add_argument("--host-cost", action="store_true", help="what a repeated call costs the host, instead")
    return parser.parse_args(arguments)


def host_cost(child: Child, options: argparse.Namespace, environment: dict) -> int | None:
    """Where it is asked for."""
    if not options.host_cost:
        return None
    costs = child.ask({"ask": "host_cost", "strategy": options.strategy}, options.timeout)["costs"]
    print(host_cost_table(costs))
    write_json(options, {"environment": environment, "strategy": options.strategy, "host_cost": costs})
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["epilogues"]:
        sys.exit(gpu_epilogues.run(sys.argv[2:]))
    sys.exit(run("gpu_gemm", read_options(), parse_cases, summary_table, markdown, host_cost))
