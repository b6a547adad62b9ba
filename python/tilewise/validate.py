# SPDX-License-Identifier: MIT
"""tilewise validate: how good the learned choice is. Exit code 1 where a target is missed.

    tilewise validate heuristic --data test.parquet --op gemm_universal --dtype bf16
    tilewise validate training-shapes --data data/gemm_h200.parquet --device cuda:0
    tilewise validate backward-models --arch sm_90a
"""
from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence

from ._verbs import Parser, run

# Each is a module of tilewise.learning with add_flags(parser) and check(given) -> facts, whose "targets" say what is met.
CHECKS = {"heuristic": ("check_heuristic", "the choice against the best of measured kernels, on records"),
          "training-shapes": ("check_training_shapes", "choice and best kernel of a few training shapes, measured again on a device"),
          "backward-models": ("check_backward_models", "what the models of backward convolutions choose for seven problems; no device")}


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="tilewise validate", description="Judge the learned choice of kernels.",
                                     epilog="Each check prints JSON with --json, and says more with --help. Exit code 1: a target is missed.")
    checks = parser.add_subparsers(dest="check", metavar="CHECK", required=True)
    for name, (module, summary) in CHECKS.items():
        flags = checks.add_parser(name, help=summary, description=summary)
        importlib.import_module(f".learning.{module}", __package__).add_flags(flags)
        flags.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    module = importlib.import_module(f".learning.{CHECKS[given.check][0]}", __package__)
    facts = module.check(given)
    if given.json:
        print(json.dumps(facts))
    else:
        print(module.text_of(facts))
        for one in facts["targets"]:
            print(f"{'PASS' if one['met'] else 'FAIL'}  {one['name']}: {one['value']:.2f} %; need more than {one['least']} %")
    return 0 if all(one["met"] for one in facts["targets"]) else 1


if __name__ == "__main__":
    sys.exit(run("validate", sys.argv[1:]))
