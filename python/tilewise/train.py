# SPDX-License-Identifier: MIT
"""tilewise train: learns from records which kernel to choose, or measures this machine and learns from that:

    tilewise train --data_dir data --out_dir models --op gemm_universal --dtype bf16 --arch sm_90a
    tilewise train --device cuda:0 --budget 25m

Needs LightGBM: pip install 'tilewise[train]'. docs/training.md explains.
"""
from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from . import _library, records
from ._verbs import Parser, run, usage_error
from .learning import model_folder, own_machine, training
from .learning.choice import examples_of
from .learning.features import MODEL_OPS, FeatureEngine, ops_of
from .learning.fit import OBJECTIVES, OF_LIBRARY, Examples, Parameters, fit
from .learning.table import table_from, use_of

COMPARE = "compare"
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_MOST_SECONDS = 1e7  # as for tilewise sweep


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="tilewise train", description="Learn from records which kernel to choose.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data_dir", "--data-dir", metavar="DIR", help="records, CSV or Parquet; those of validation and test sets are left out")
    source.add_argument("--device", metavar="D", help="measure this device first, and install the models that are better than what is there")
    parser.add_argument("--out_dir", "--out-dir", "--out", metavar="DIR", help="where the folders of models go")
    parser.add_argument("--op", help="gemm_universal, grouped_conv, or one of its directions; all that there are unless given")
    parser.add_argument("--dtype", help="an element type, with those that share its model; all that there are unless given")
    parser.add_argument("--arch", help="an arch; all that there are unless given")
    parser.add_argument("--targets", default="tflops", choices=["tflops"], help="what is learned: times, and so TFLOPS")
    parser.add_argument("--n_splits", "--n-splits", type=int, default=5, metavar="N", help="folds; 5")
    parser.add_argument("--objective", default="residual", choices=[*OF_LIBRARY, COMPARE],
                        help="compare: try all on the same folds and take the one with the least regret")
    parser.add_argument("--parameters", metavar="DIR", help="objective and parameters of the models in a folder, for those that it has")
    parser.add_argument("--trees", type=int, default=Parameters.trees, help=f"at most so many; {Parameters.trees}")
    parser.add_argument("--search", metavar="TIME", help="search for parameters for so long: 90s, 20m, 1h")
    parser.add_argument("--warm_start", "--warm-start", metavar="DIR", help="go on from the model of a folder, which keeps its trees")
    parser.add_argument("--if_better", "--if-better", action="store_true",
                        help="write only models that choose better than the analytic model on folds")
    parser.add_argument("--studies", action="store_true", help="also leave out each network and each family of kernels in turn (minutes)")
    parser.add_argument("--threads", type=int, help="that the records of a CPU were measured with; 1")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of Dask, whose workers fit the last model")
    parser.add_argument("--budget", metavar="TIME", default="25m", help="with --device: how long to measure; 25m")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def seconds_of(option: str, text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0 < seconds <= _MOST_SECONDS:
        raise usage_error(f"{option} {text}: need a time above 0 such as 90s, 25m or 1h")
    return seconds


# ---- what there is to learn from -----------------------------------------------------------------------------------


def read_data(folder: str) -> pd.DataFrame:
    """The records of a folder that may be learned from: not those of the sets that models are judged by."""
    files = sorted(path for path in pathlib.Path(folder).glob("*") if path.suffix in (".csv", ".parquet"))
    if not files:
        raise usage_error(f"{folder}: there are no records, neither *.parquet nor *.csv; tilewise sweep --problems gemm_training --kernels sample "
                          "measures some, and tilewise convert keeps them")
    frames = [records.read_file(path) for path in files]
    kept = [frame[[use_of(name) == "training" for name in frame["set"]]] if "set" in frame.columns else frame for frame in frames]
    merged = records.merged(kept)
    if merged.empty:
        raise usage_error(f"{folder}: all {sum(map(len, frames))} records are of validation and test sets, which nothing may be learned from; "
                          "measure a training set")
    return records.complete(merged)


def parts_of(frame: pd.DataFrame, op: str | None, dtype: str | None, arch: str | None) -> Iterator[tuple[str, str, str]]:
    """The operations, types and archs that there is a model to make of; what is asked for whether or not there are records."""
    def there(column: str) -> list[str]:
        return sorted(frame[column].astype(str).unique())

    ops = ops_of(op) if op else [one for one in MODEL_OPS if one in there("problem_op")]
    if op and len(ops) > 1:
        ops = [one for one in ops if one in there("problem_op")] or ops
    archs = [arch] if arch else there("kernel_arch")
    asked = [op, dtype, arch].count(None) == 0
    have = set(zip(frame["problem_op"].astype(str), frame["problem_dtype"].astype(str), frame["kernel_arch"].astype(str)))
    for one, on in itertools.product(ops, archs):
        for named in [dtype] if dtype else sorted({training.types_like(other, on)[0] for other in there("problem_dtype")}):
            if asked or any((one, like, on) in have for like in training.types_like(named, on)):
                yield one, named, on


# ---- learning ------------------------------------------------------------------------------------------------------


def _say(given: argparse.Namespace, text: str) -> None:
    print(text, file=sys.stderr if given.json else sys.stdout, flush=True)


def _row(name: str, scores: dict[str, Any]) -> str:
    return (f"  {name:12} mean {scores['mean']:6.2f}  median {scores['median']:6.2f}  P10 {scores['p10']:6.2f}  P1 {scores['p1']:6.2f}  "
            f"min {scores['min']:6.2f}  match {scores['match']:5.1f} ({scores['match_within_noise']:5.1f} within noise)  "
            f"first 3 {scores['top3']:6.2f}  first 8 {scores['top8']:6.2f}  times {scores['accuracy']:6.2f}")


def _parameters(name: str, given: argparse.Namespace) -> Parameters:
    """To begin with."""
    folder = pathlib.Path(given.parameters or "") / name
    if given.parameters and folder.is_dir():
        try:
            return Parameters(**model_folder.read_facts(folder)["parameters"])
        except (KeyError, TypeError) as error:
            raise usage_error(f"--parameters {given.parameters}: {folder / model_folder.FACTS} has no parameters of this version: {error}") from None
    return Parameters(objective=given.objective if given.objective != COMPARE else Parameters.objective, trees=given.trees)


def _choose(examples: Examples, parameters: Parameters, given: argparse.Namespace) -> tuple[training.OnFolds, dict[str, Any]]:
    """The objective and the parameters, by folds; and the table of what was tried."""
    objectives = OBJECTIVES if given.objective == COMPARE else (parameters.objective,)
    tried = training.compared(examples, objectives, parameters, given.n_splits)
    table = {one.parameters.objective: training.scores_of(examples, one.log_us) for one in tried}
    analytic = next(iter(table.values()))["analytic"]
    _say(given, f"  folds of shapes that were not learned from: efficiency in percent, pools of {analytic['pool']}, noise {analytic['noise']} %, "
         f"ceiling {analytic['ceiling']}\n" + "\n".join(_row(name, scores) for name, scores in {"analytic": analytic, **table}.items()))
    chosen = training.best_of(tried)
    if given.search:
        chosen = training.searched(examples, chosen, given.n_splits, seconds_of("--search", given.search), lambda text: _say(given, text))
    return chosen, {"analytic": analytic, **table}


def _begin_with(folder: str | None, op: str) -> str | None:
    if not folder:
        return None
    try:
        _library.check("tilewise_predict", folder, None, 0, None)  # by the library, which takes no harm from a broken file
    except _library.TilewiseError as error:
        raise usage_error(f"--warm_start {folder}: {error}") from None
    facts = model_folder.read_facts(folder)
    if facts["op"] != op:
        raise usage_error(f"--warm_start {folder}: a model of {facts['op']}; need {op}; train without it")
    return str(pathlib.Path(folder) / model_folder.TREES)


def train_one(frame: pd.DataFrame, part: tuple[str, str, str], given: argparse.Namespace) -> dict[str, Any]:
    """Trains the model of an operation, type and arch, writes its folder and returns what model.json says, with the table of objectives."""
    op, dtype, arch = part
    dtypes = training.types_like(dtype, arch)
    name = training.folder_name(op, dtype, arch)
    table = table_from(frame, op=op, dtypes=dtypes, arch=arch)
    if len(table.facts["devices"]) > 1:
        raise usage_error(f"{name}: records of several devices: {', '.join(table.facts['devices'])}; a model is of one; train them apart")
    engine = FeatureEngine(op, arch, given.threads or 1)
    begin_with = _begin_with(given.warm_start, op)
    _say(given, f"{name}: {len(table)} records of {len(table.problems)} problems, {', '.join(table.facts['devices'])}")
    examples = examples_of(table, given.threads or 1)
    chosen, compared = _choose(examples, _parameters(name, given), given)
    fit_by = fit
    if given.scheduler:
        from .learning.on_dask import fit_on
        fit_by = fit_on(given.scheduler)
    booster, trees = training.final(examples, chosen, begin_with, fit_by)
    facts = training.model_facts(examples, chosen, engine, dtypes, trees)
    if given.studies:
        facts["without_network"] = training.without_each(examples, chosen.parameters, np.array(table.networks))
        facts["without_kind"] = training.without_each_kind(examples, chosen.parameters, given.n_splits)
        for study in ("without_network", "without_kind"):
            _say(given, f"  {study.replace('_', ' each ')}: " + ", ".join(f"{label} {mean:.2f}" for label, mean in facts[study].items()))
    facts["scores"]["objectives"] = {objective: {key: scores[key] for key in ("mean", "median", "p10", "p1", "top8", "accuracy")}
                                     for objective, scores in compared.items()}
    if given.if_better and facts["scores"]["mean"] <= facts["scores"]["analytic"]["mean"]:
        _say(given, "  not written: it chooses no better than the analytic model")
        return {"folder": None, **facts}
    folder = pathlib.Path(given.out_dir) / name
    model_folder.write(folder, training.trees_text(booster), facts)
    _say(given, f"  {folder}: {booster.num_trees()} trees by {chosen.parameters.objective}, {(folder / model_folder.TREES).stat().st_size} bytes")
    return {"folder": str(folder), **facts}


def _check(given: argparse.Namespace) -> None:
    """What would else be found out after minutes."""
    if not given.device and not given.out_dir:
        raise usage_error("--data_dir needs --out_dir, where the models go")
    for name, least in (("n_splits", 2), ("trees", 1), ("threads", 1)):
        number = getattr(given, name)
        if number is not None and number < least:
            raise usage_error(f"--{name} {number}: need at least {least}")
    if given.parameters and not pathlib.Path(given.parameters).is_dir():
        raise usage_error(f"--parameters {given.parameters}: there is no such folder of models")
    out = pathlib.Path(given.out_dir or ".")
    nearest = next(place for place in (out, *out.resolve().parents) if place.exists())
    if not nearest.is_dir():
        raise usage_error(f"--out_dir {given.out_dir}: {nearest} is no folder")
    if given.search:
        seconds_of("--search", given.search)


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    _check(given)
    import lightgbm  # noqa: F401  what is missing is said before anything is begun

    if given.device:
        return own_machine.train(given, seconds_of("--budget", given.budget), train_one, lambda text: _say(given, text))
    if given.op:
        ops_of(given.op)
    frame = read_data(given.data_dir)
    parts = list(parts_of(frame, given.op, given.dtype, given.arch))
    if not parts:
        raise usage_error(f"{given.data_dir}: no records of {given.op or 'any operation'}, {given.dtype or 'any type'}, {given.arch or 'any arch'}")
    made = [train_one(frame, part, given) for part in parts]
    if given.json:
        print(json.dumps({"models": made}))
    return 0


if __name__ == "__main__":
    sys.exit(run("train", sys.argv[1:]))
