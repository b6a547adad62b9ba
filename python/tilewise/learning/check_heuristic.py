# SPDX-License-Identifier: MIT
"""The learned choice against the best of measured kernels, on records of problems that were not learned from."""
from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import pandas as pd

from .. import records
from .._verbs import usage_error
from . import baselines, ledger, model_folder
from . import scores as scoring
from .choice import Choice, choice_of
from .features import ops_of
from .table import Table, table_from, use_of
from .targets import targets_of


def add_flags(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--data", metavar="FILE", nargs="+", help="records, CSV or Parquet; those in data/ of the sources unless given")
    flags.add_argument("--set", default="validation", choices=("validation", "test", "training", "all"),
                       help="the records to judge by, by their problem sets; validation. Each look at a test set is written down")
    flags.add_argument("--op", default="gemm_universal", help="gemm_universal, or a direction such as grouped_conv_forward")
    flags.add_argument("--dtype", required=True, help="an element type")
    flags.add_argument("--layout", help="only problems of this layout")
    flags.add_argument("--arch", help="only records of this arch")
    flags.add_argument("--model_dir", "--model-dir", metavar="DIR", help="a model, in place of those that are installed or shipped")
    flags.add_argument("--rule-set", default="default", help="the kernels that are chosen from; default")
    flags.add_argument("--known", metavar="FILE", nargs="+", help="training records, which the best single kernel and the nearest shape are from")
    flags.add_argument("--threads", type=int, help="that the records of a CPU were measured with; 1")
    flags.add_argument("--scores", metavar="FILE", default=ledger.default_path(), help="where looks at a test set are written down")
    flags.add_argument("--plots", metavar="DIR", help="writes pictures there (needs matplotlib)")


def files(given: list[str] | None) -> list[str]:
    root = ledger.checkout()
    found = given or sorted(map(str, (root / "data").glob("*.parquet"))) if given or root else []
    if not found:
        raise usage_error("there are no records to judge by; name them with --data")
    return found


def of_set(frame: pd.DataFrame, use: str) -> pd.DataFrame:
    if use == "all" or "set" not in frame.columns:
        return frame
    uses = frame["set"].map(use_of)
    if not (uses == use).any():
        raise usage_error(f"no records of {use} sets; these are of {', '.join(sorted(frame['set'].astype(str).unique()))}; choose others by --set")
    return frame[uses == use]


def _read(given: argparse.Namespace) -> Table:
    ops = ops_of(given.op)
    if len(ops) > 1:
        raise usage_error(f"--op {given.op} has {len(ops)} directions; name one, such as {given.op}_forward")
    frame = of_set(records.read(*files(given.data), mix=True), given.set)
    table = table_from(frame, op=ops[0], dtypes=[given.dtype], arch=given.arch)
    if given.layout:
        wanted = np.array([problem.fields.get("layout") == given.layout for problem in table.problems])
        if not wanted.any():
            raise usage_error(f"no records of layout {given.layout}; there are "
                              f"{', '.join(sorted({str(problem.fields.get('layout')) for problem in table.problems}))}")
        table = table.part(wanted)
    if "," in table.facts["arch"]:
        raise usage_error(f"records of several archs: {table.facts['arch']}; choose one by --arch")
    return table


def _model(choice: Choice) -> tuple[str, dict[str, Any]]:
    """What tells the model from others, and what its model.json says, where that is at hand."""
    names = [str(one["name"]) for one in choice.models]
    for name in names:
        place = ledger.folder_of(name)
        if place:
            return model_folder.trees_hash(place), model_folder.read_facts(place)
    return ", ".join(names), {}


def _known_training_data(table: Table, facts: dict[str, Any]) -> str | None:
    learned = set(str(facts.get("set", "")).split(", ")) & set(table.facts["sets"])
    if facts.get("data") == table.facts["data_hash"] or learned:
        return "these records are the model's own training data" + (f" ({', '.join(sorted(learned))})" if learned else "") + \
            ": the scores say how well it remembers, not how well it chooses"
    return None


def check(given: argparse.Namespace) -> dict[str, Any]:
    table = _read(given)
    choice = choice_of(table, model_dir=given.model_dir, rule_set=given.rule_set, threads=given.threads)
    model, facts = _model(choice)
    warning = _known_training_data(table, facts)
    if warning:
        print(f"tilewise validate: warning: {warning}", file=sys.stderr)
    analytic = choice_of(table, strategy="rules", rule_set=given.rule_set, threads=given.threads)
    judged = scoring.judge(table, choice.ranking)
    known = table_from(records.read(*given.known, mix=True), op=table.facts["op"]) if given.known else table
    rankings = {"analytic": analytic.ranking, "first fit": baselines.by_first_fit(table),
                "best single kernel": baselines.by_best_single(table, known)}
    if given.known:
        rankings["nearest shape"] = baselines.by_nearest(table, known)
    of_baselines = {name: scoring.judge(table, ranking) for name, ranking in rankings.items()}
    scores = {**scoring.figures(judged), "accuracy": scoring.accuracy(table, choice.predicted_us),
              "accuracy_of_choices": scoring.accuracy(table, choice.predicted_us, judged.picks), "candidates": int(np.median(choice.pools))}
    parts = scoring.by_part(judged, of_baselines["analytic"])
    told = {"op": table.facts["op"], "dtype": given.dtype, "arch": table.facts["arch"], "sets": table.facts["sets"], "model": model,
            "rule_set": given.rule_set, "scores": scores, "baselines": {name: scoring.figures(one) for name, one in of_baselines.items()},
            "parts": parts, "worse_families": scoring.worse_families(parts), "slowdowns": scoring.slowdowns(judged), "worst": scoring.worst(judged),
            "warning": warning, "targets": targets_of(table.facts["op"], scores)}
    if given.scores and any(use_of(one) == "test" for one in table.facts["sets"]):
        ledger.add(given.scores, table.facts["sets"], model, scores, op=table.facts["op"], dtype=given.dtype, arch=table.facts["arch"],
                   rule_set=given.rule_set, layout=given.layout, analytic=scoring.figures(of_baselines["analytic"])["mean"])
    if given.plots:
        from .plots import write_plots
        write_plots(given.plots, table, judged, choice.predicted_us)
    return told


# ---- in words ------------------------------------------------------------------------------------------------------

_COLUMNS = ("mean", "median", "p90", "p10", "p1", "min", "match", "match_within_noise", "top3", "top8", "below_90")


def _rows(facts: dict[str, Any]) -> list[str]:
    lines = [f"{'':20}" + "".join(f"{name.replace('match_within_noise', 'in noise'):>9}" for name in _COLUMNS)]
    for name, scores in {"learned": facts["scores"], **facts["baselines"]}.items():
        lines.append(f"{name:20}" + "".join(f"{scores[column]:9.2f}" for column in _COLUMNS))
    return lines


def text_of(facts: dict[str, Any]) -> str:
    """For people."""
    s = facts["scores"]
    lines = [f"{facts['op']} {facts['dtype']} {facts['arch']}, model {facts['model']}, {s['problems']} problems of {', '.join(facts['sets'])}",
             f"pools of {s['pool']} measured kernels, {s['candidates']} candidates; noise {s['noise']} %; the first timing's best is worth "
             f"{s['ceiling']} % by the second; predicted times are right to {s['accuracy']} %, {s['accuracy_of_choices']} % of the choices", *_rows(facts)]
    for part, rows in facts["parts"].items():
        lines.append(f"by {part}: problems, mean, P10, analytic mean")
        lines += [f"  {name:30}{row['problems']:6}{row['mean']:9.2f}{row['p10']:9.2f}{row['analytic']:9.2f}" for name, row in rows.items()]
    lines.append("networks of 20 problems or more where the analytic model is better by half a point: " + (", ".join(facts["worse_families"]) or "none"))
    lines.append("time of the choices over that of the best, by network: " + ", ".join(f"{name} {x:.3f}" for name, x in facts["slowdowns"].items()))
    lines.append("worst:")
    lines += [f"  {one['efficiency']:6.2f}  {one['problem']}\n          chose {one['choice']}\n          best  {one['best']}" for one in facts["worst"]]
    return "\n".join(lines)
