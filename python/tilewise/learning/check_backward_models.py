# SPDX-License-Identifier: MIT
"""What the models of backward convolutions choose for seven problems, without a device: whether each has a choice, between which kernels,
and how clear it is. Their targets are held against the scores that the models had on folds."""
from __future__ import annotations

import argparse
import collections
import pathlib
from typing import Any

from .. import _library
from .._verbs import usage_error
from ..api import find_kernel
from ..problem import Problem
from . import ledger, model_folder
from .choice import choose
from .targets import target, targets_of

PROBLEMS = (
    "conv_bwd_data:n=32,g=1,c=64,k=64,in=56x56,filter=3x3,pad=1x1,dtype=bf16",
    "conv_bwd_data:n=32,g=1,c=512,k=256,in=28x28,filter=1x1,dtype=bf16",
    "conv_bwd_data:n=16,g=1,c=256,k=512,in=28x28,filter=3x3,stride=2x2,pad=1x1,dtype=bf16",
    "conv_bwd_data:n=16,g=32,c=512,k=512,in=14x14,filter=3x3,pad=1x1,dtype=bf16",
    "conv_bwd_weight:n=32,g=1,c=64,k=64,in=56x56,filter=3x3,pad=1x1,dtype=bf16",
    "conv_bwd_weight:n=64,g=1,c=1024,k=256,in=14x14,filter=1x1,dtype=bf16",
    "conv_bwd_weight:n=32,g=1,c=3,k=64,in=224x224,filter=7x7,stride=2x2,pad=3x3,dtype=bf16",
)
SHOWN = 3


def add_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--arch", default="sm_90a", help="the arch of the kernels; sm_90a")
    flags.add_argument("--model_dir", "--model-dir", metavar="DIR", help="the folder of the models, in place of those that are installed or shipped")


def _one(text: str, given: argparse.Namespace) -> dict[str, Any]:
    problem = Problem(text)
    answer = choose(problem.text, arch=given.arch, model_dir=given.model_dir)
    first = [one for one in answer["candidates"] if one.get("predicted_us")][:SHOWN]
    if not first:
        raise usage_error(f"{problem}: no kernel of {given.arch} may run it")
    shown = [{"name": one["name"], "us": one["predicted_us"], "tflops": problem.flops / one["predicted_us"] / 1e6,
              "pipeline": find_kernel(one["name"]).config["pipeline"]} for one in first]
    return {"problem": problem.text, "op": problem.op, "first": shown, "gap": 100 * (1 - shown[-1]["tflops"] / shown[0]["tflops"]),
            "model": (answer["plan"] or {}).get("model", {}).get("name")}


def _scores_of(names: set[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The operation and the scores that the model.json of each model says, where it is at hand."""
    found = {}
    for name in sorted(names):
        place = ledger.folder_of(name)
        if place:
            facts = model_folder.read_facts(place)
            found[pathlib.Path(name).name] = facts["op"], facts.get("scores", {})
    return found


def check(given: argparse.Namespace) -> dict[str, Any]:
    problems = [_one(text, given) for text in PROBLEMS]
    names = {one["model"] for one in problems if one["model"]}
    targets = [target("problems with a choice", 100.0 * sum(1 for one in problems if one["first"]) / len(problems), 99.0)]
    for name, (op, scores) in _scores_of(names).items():
        targets += targets_of(op, scores, f"{name}: ")
    pipelines = collections.Counter(one["pipeline"] for problem in problems for one in problem["first"])
    return {"arch": given.arch, "version": _library.version(), "problems": problems, "models": sorted(pathlib.Path(name).name for name in names),
            "pipelines": dict(pipelines.most_common()),
            "tflops": sum(one["first"][0]["tflops"] for one in problems) / len(problems), "targets": targets}


def text_of(facts: dict[str, Any]) -> str:
    """For people."""
    lines = []
    for problem in facts["problems"]:
        lines.append(f"{problem['problem']}  ({problem['gap']:.1f} % from the first to the last)")
        lines += [f"  {one['us']:9.2f} us {one['tflops']:8.1f} TFLOPS  {one['name']}" for one in problem["first"]]
    return "\n".join([*lines, f"models: {', '.join(facts['models'])}; {facts['tflops']:.1f} TFLOPS on average; pipelines of the first {SHOWN}: " +
                      ", ".join(f"{name} {count}" for name, count in facts["pipelines"].items())])
