# SPDX-License-Identifier: MIT
"""A few shapes that were learned from: the model's choice and the kernel that was best in the records, both built and run again, in turns.
It tells whether records and model still hold on a device, not how well shapes are chosen for that nobody has measured."""
from __future__ import annotations

import argparse
import pathlib
import random
import tempfile
from typing import Any

import numpy as np

from .. import records
from .._verbs import usage_error
from . import check_heuristic
from . import scores as scoring
from .choice import choose
from .features import ops_of
from .measuring import measure_kernels
from .table import Table, table_from
from .targets import targets_of

LEAST_KERNELS = 5


def add_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--count", type=int, default=5, help="how many shapes; 5")
    flags.add_argument("--seed", type=int, default=0, help="of which they are; 0")
    flags.add_argument("--op", default="grouped_conv_forward", help="gemm_universal, or a direction; grouped_conv_forward")
    flags.add_argument("--dtype", default="bf16", help="an element type; bf16")
    flags.add_argument("--arch", help="only records of this arch")
    flags.add_argument("--device", default="cuda:0", help="where they run; cuda:0")
    flags.add_argument("--data", metavar="FILE", nargs="+", help="training records; those in data/ of the sources unless given")
    flags.add_argument("--model_dir", "--model-dir", metavar="DIR", help="a model, in place of those that are installed or shipped")


def _shapes(given: argparse.Namespace) -> tuple[Table, list[int]]:
    frame = records.read(*check_heuristic.files(given.data), mix=True)
    table = table_from(check_heuristic.of_set(frame, "training"), op=ops_of(given.op)[0], dtypes=[given.dtype], arch=given.arch)
    many = [index for index, rows in enumerate(table.rows()) if np.isfinite(table.time[rows]).sum() >= LEAST_KERNELS]
    if len(many) < given.count:
        raise usage_error(f"--count {given.count}: only {len(many)} shapes have {LEAST_KERNELS} kernels with a time")
    return table, random.Random(given.seed).sample(many, given.count)


def _again(table: Table, index: int, given: argparse.Namespace, folder: pathlib.Path) -> dict[str, Any]:
    """One shape."""
    problem = table.problems[index]
    chosen = choose(problem.text, arch=table.facts["arch"], model_dir=given.model_dir)
    first = chosen["candidates"][0]
    best = str(table.kernels[table.best()[index]])
    measured = table_from(records.read(measure_kernels(problem.text, [first["name"], best], given.device, folder, index)))
    time = dict(zip(measured.kernels, scoring.second_time(measured)))
    own, least = time.get(first["name"], np.nan), time.get(best, np.nan)
    fair = np.isfinite(own) and np.isfinite(least)
    return {"problem": problem.text, "choice": first["name"], "best": best, "choice_us": own, "best_us": least,
            "efficiency": min(1.0, float(least / own)) if fair else 0.0, "match": first["name"] == best,
            "within_noise": bool(fair and own <= least * (1 + scoring.noise(measured))),
            "predicted_tflops": problem.flops / first["predicted_us"] / 1e6, "measured_tflops": problem.flops / own / 1e6 if fair else None}


def check(given: argparse.Namespace) -> dict[str, Any]:
    if given.count < 1:
        raise usage_error(f"--count {given.count}: need at least 1")
    table, chosen = _shapes(given)
    with tempfile.TemporaryDirectory() as folder:
        shapes = [_again(table, index, given, pathlib.Path(folder)) for index in chosen]
    efficiency = np.array([one["efficiency"] for one in shapes])
    errors = [abs(one["predicted_tflops"] / one["measured_tflops"] - 1) if one["measured_tflops"] else 1.0 for one in shapes]
    scores = {"mean": 100 * float(efficiency.mean()), "p10": 100 * float(np.quantile(efficiency, 0.1)),
              "match": 100 * float(np.mean([one["match"] for one in shapes])),
              "match_within_noise": 100 * float(np.mean([one["within_noise"] for one in shapes])), "accuracy": 100 * (1 - float(np.median(errors)))}
    return {"op": table.facts["op"], "device": given.device, "shapes": shapes, "scores": scores, "targets": targets_of(table.facts["op"], scores)}


def text_of(facts: dict[str, Any]) -> str:
    """For people."""
    lines = []
    for one in facts["shapes"]:
        measured = f"{one['measured_tflops']:.1f}" if one["measured_tflops"] else "no time"
        lines += [one["problem"], f"  chose {one['choice']}: {one['choice_us']:.2f} us, {measured} TFLOPS, predicted {one['predicted_tflops']:.1f}",
                  f"  best  {one['best']}: {one['best_us']:.2f} us; efficiency {100 * one['efficiency']:.1f} %"]
    return "\n".join([*lines, "mean efficiency {mean:.2f} %, P10 {p10:.2f} %, exact match {match:.0f} %, predicted times right to {accuracy:.1f} %"
                      .format(**facts["scores"])])
