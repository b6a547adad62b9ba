# SPDX-License-Identifier: MIT
"""Times of kernels by a learned model, and the command for it:

    tilewise predict gemm:m=1000,n=512,k=4096,dtype=bf16,layout=rcr --arch sm_90a --top 5

    predictor = tilewise.predict.Predictor("models/gemm_universal_bf16_sm_90a")
    predictor.select_best("gemm:m=1000,n=512,k=4096,dtype=bf16,layout=rcr", names)

The library computes the features and the times; LightGBM is not needed. Needs NumPy: pip install 'tilewise[numpy]'.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _library
from ._verbs import Parser, run, usage_error
from .learning.features import FeatureEngine, doubles, name_of, query, texts
from .learning.model_folder import read_facts
from .problem import Problem

Kernel = str | Mapping[str, Any]


class Predictor:
    """A model. A kernel is a name, or a row of a table with the column kernel_name, of which nothing else counts: the problem is the one that
    is asked for, whatever the row says."""

    def __init__(self, model_dir: str | os.PathLike[str], feature_engine: FeatureEngine | None = None):
        self.model_dir = os.fspath(model_dir)
        self.facts = read_facts(model_dir)
        self.engine = feature_engine or FeatureEngine(self.facts["op"], self.facts.get("arch"))
        if self.engine.op != self.facts["op"]:
            raise usage_error(f"{model_dir}: a model of {self.facts['op']}; the features are those of {self.engine.op}")

    def predict_us(self, problem: Any, kernels: Sequence[Kernel]) -> np.ndarray:
        """Microseconds of each kernel; NaN where it may not run the problem."""
        names = [name_of(kernel) for kernel in kernels]
        us = np.empty(len(names))
        _library.check("tilewise_predict_times", self.model_dir, self.engine.problem(problem).text,
                       query(self.engine.arch, self.engine.threads), texts(names), len(names), doubles(us), None, None)
        return us

    def predict_latency(self, problem: Any, kernel: Kernel) -> float:
        """Milliseconds."""
        return float(self.predict_us(problem, [kernel])[0]) / 1e3

    def predict_tflops(self, problem: Any, kernel: Kernel) -> float:
        return float(self.engine.problem(problem).flops / self.predict_us(problem, [kernel])[0] / 1e6)

    def rank_kernels(self, problem: Any, kernels: Iterable[Kernel]) -> list[tuple[str, float]]:
        """(name, TFLOPS) of those that may run the problem, best first."""
        names = [name_of(kernel) for kernel in kernels]
        us = self.predict_us(problem, names)
        flops = self.engine.problem(problem).flops
        return [(names[i], float(flops / us[i] / 1e6)) for i in np.argsort(us, kind="stable") if np.isfinite(us[i])]

    def select_best(self, problem: Any, kernels: Iterable[Kernel]) -> str:
        """The name of the kernel that is predicted fastest."""
        ranked = self.rank_kernels(problem, kernels)
        if not ranked:
            raise usage_error(f"{self.engine.problem(problem)}: none of these kernels may run it; tilewise select says which may")
        return ranked[0][0]


# ---- the command ---------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="tilewise predict", description="Predict the times of kernels on a problem, by the learned model.")
    parser.add_argument("problem", metavar="PROBLEM", help="a problem's text")
    parser.add_argument("--arch", help="the arch of the kernels; that of this machine's CPU unless given")
    parser.add_argument("--rule-set", help="the kernels to choose from")
    parser.add_argument("--model-dir", "--model_dir", help="the folder of a model, or of models, in place of those that are installed or shipped")
    parser.add_argument("--top", metavar="N", type=int, default=10, help="how many to show; 10")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    if given.top < 1:
        raise usage_error(f"--top {given.top}: need at least 1")
    problem = Problem(given.problem)
    options = {"strategy": "model", "arch": given.arch, "rule_set": given.rule_set, "model_dir": given.model_dir}
    answer = _library.call("tilewise_select", problem.text, json.dumps({key: value for key, value in options.items() if value}))
    shown = [{"name": one["name"], "us": one["predicted_us"], "tflops": problem.flops / one["predicted_us"] / 1e6,
              "analytic_us": one.get("analytic_us"), "error": one.get("error")}
             for one in answer["candidates"][:given.top] if one.get("predicted_us")]
    if given.json:
        print(json.dumps({"problem": problem.text, "plan": answer["plan"], "kernels": shown}))
        return 0
    print(f"{problem}\n{(answer['plan'] or {}).get('why', '')}")
    for one in shown:
        doubt = f" ±{100 * one['error']:.0f}%" if one["error"] else ""
        print(f"{one['us']:10.2f} us{doubt:6} {one['tflops']:8.1f} TFLOPS  {one['name']}")
    return 0


if __name__ == "__main__":
    sys.exit(run("predict", sys.argv[1:]))
