# SPDX-License-Identifier: MIT
"""Models for the machine at hand: measures its device, learns, holds the new choice against the one that is there on problems that were
not learned from, and installs what is better."""
from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from .. import records
from .._verbs import usage_error
from ..problem_sets import OPS
from . import model_folder
from . import scores as scoring
from .choice import choice_of
from .features import ops_of
from .measuring import sweep
from .table import table_from
from .training import folder_name, types_like

TRAINING_SHARE = 0.75  # of the budget; validation has the rest
LEAST_SECONDS = 60     # of an operation; most of the first goes to compilers
LEAST_PROBLEMS = {"training": 20, "validation": 10}  # on fewer a better mean is chance

TrainOne = Callable[[pd.DataFrame, tuple[str, str, str], argparse.Namespace], dict[str, Any]]
Say = Callable[[str], None]


def _measured(key: str, use: str, seconds: float, given: argparse.Namespace, folder: pathlib.Path, say: Say) -> pathlib.Path:
    name = f"{'cpu_' if given.device == 'cpu' else ''}{key}_{use}"
    out = folder / f"{name}.csv"
    say(f"measuring {name} on {given.device}, {seconds:.0f} s: {out}")
    threads = ["--threads", str(given.threads or 1)] if given.device == "cpu" else []
    sweep(name, given.device, out, ["--kernels", "sample", "--budget", f"{max(1, round(seconds))}s", "--resume", *threads])
    return out


def _row(name: str, scores: dict[str, Any]) -> str:
    return f"  {name:4} mean {scores['mean']:6.2f}  median {scores['median']:6.2f}  P10 {scores['p10']:6.2f}  first 8 {scores['top8']:6.2f}"


def _compared(frame: pd.DataFrame, part: tuple[str, str, str], folder: str, given: argparse.Namespace, say: Say) -> dict[str, Any]:
    """The choice as it is today and by the new model, on the same problems."""
    op, dtype, arch = part
    table = table_from(frame, op=op, dtypes=types_like(dtype, arch), arch=arch)
    options = {"threads": given.threads or 1}
    found = {"old": choice_of(table, strategy="auto", **options), "new": choice_of(table, model_dir=folder, **options)}
    scores = {name: scoring.figures(scoring.judge(table, choice.ranking)) for name, choice in found.items()}
    say(f"on {len(table.problems)} problems that were not learned from, efficiency in percent:\n" +
        "\n".join(_row(name, one) for name, one in scores.items()))
    return scores


def is_better(scores: dict[str, Any]) -> bool:
    return bool(scores["new"]["mean"] > scores["old"]["mean"])


def _one(key: str, seconds: float, given: argparse.Namespace, train_one: TrainOne, say: Say) -> dict[str, Any]:
    """One operation: measured, learned, compared, and installed where it is better."""
    folder = pathlib.Path(given.out_dir) / "records"
    folder.mkdir(parents=True, exist_ok=True)
    training = records.read(_measured(key, "training", TRAINING_SHARE * seconds, given, folder, say))
    unseen = records.read(_measured(key, "validation", (1 - TRAINING_SHARE) * seconds, given, folder, say))
    dtype, arch = str(training["problem_dtype"].iloc[0]), str(training["kernel_arch"].iloc[0])
    part = OPS[key], dtype, arch
    told: dict[str, Any] = {"model": folder_name(*part), "scores": None, "installed": None}
    for use, frame in (("training", training), ("validation", unseen)):
        measured = frame["problem"][frame["is_valid"]].nunique()
        if measured < LEAST_PROBLEMS[use]:
            say(f"{told['model']} is not made: {measured} {use} problems were measured; need at least {LEAST_PROBLEMS[use]}. The same command "
                "goes on with these records; a longer --budget measures more at once")
            return told
    made = train_one(training, part, given)
    if made["folder"] is None:  # which --if_better has said
        return told
    scores = _compared(unseen, part, made["folder"], given, say)
    place = model_folder.install(made["folder"]) if is_better(scores) else None
    say(f"installed as {place}" if place else f"{folder_name(*part)} is not installed: it is no better than what is there")
    return {**told, "scores": scores, "installed": str(place) if place else None}


def _with_time(keys: Sequence[str], seconds: float, say: Say) -> Sequence[str]:
    """As many of the operations as there is time for."""
    count = max(1, int(seconds // LEAST_SECONDS))
    if count < len(keys):
        say(f"{seconds:g} s are enough for {count} of {len(keys)} operations: {', '.join(keys[:count])}. --op chooses another; "
            f"--budget {LEAST_SECONDS * len(keys)}s is the least for all")
    return keys[:count]


def train(given: argparse.Namespace, seconds: float, train_one: TrainOne, say: Say) -> int:
    """Of the operations that are asked for, each with its share of the time. 1 where too little was measured for any."""
    for name in ("dtype", "arch"):
        if getattr(given, name):
            raise usage_error(f"--{name} is for records; the sets that are measured on {given.device} have their own types, and the device its arch")
    own = model_folder.user_folder()  # asked first: there is nothing to measure for where nothing can be installed
    given.out_dir = given.out_dir or str(own.parent / "training")
    wanted = ops_of(given.op) if given.op else list(OPS.values())
    keys = _with_time([key for key, op in OPS.items() if op in wanted], seconds, say)
    made = [_one(key, seconds / len(keys), given, train_one, say) for key in keys]
    if given.json:
        print(json.dumps({"models": made}))
    return 0 if any(one["scores"] for one in made) else 1
