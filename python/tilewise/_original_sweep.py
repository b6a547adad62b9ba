# SPDX-License-Identifier: MIT
"""The original's benchmark scripts of tile_engine, over `tilewise sweep`: their flags, their configs in its words, and their columns
beside those of a record.
"""
from __future__ import annotations

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _library
from ._cluster_task import problem_lines, problem_of
from ._command import command
from ._files import new_file
from ._original_conv import _NAMES, _value
from ._original_conv_problem import VARIANTS
from ._verbs import usage_error
from .api import kernels
from .config import KernelConfig
from .dispatcher_common import numbers
from .problem import Problem

# What a problem decides: a kernel is only ever asked to do what it can.
OF_PROBLEMS = ("data_type", "ndim_spatial", "layout")
SHAPES = {"tile": "tile", "wave": "wave", "warp": "wave", "warp_tile": "warp_tile"}  # a prefix of the original's: our field
Columns = Callable[[Problem], dict[str, Any]]


# ---- configs -------------------------------------------------------------------------------------------------------


def _values(name: str, given: Any) -> list[Any]:
    """Of {"values": [...]}, {"min", "max", "step"}, a list, or one value."""
    if isinstance(given, Mapping) and "values" in given:
        return list(given["values"])
    if isinstance(given, Mapping) and {"min", "max", "step"} <= set(given):
        return list(range(given["min"], given["max"] + 1, given["step"]))
    if isinstance(given, Mapping):
        raise usage_error(f"{name}: have {json.dumps(given)}; need values, or min, max and step")
    return given if isinstance(given, list) else [given]


def _have(config: KernelConfig, trait: str) -> Any:
    """The value of a kernel for one of the original's words."""
    prefix, _, letter = trait.rpartition("_")
    if prefix in SHAPES and letter in "mnk":
        return numbers(config.values[SHAPES[prefix]])["mnk".index(letter)]
    if prefix == "pad" and letter in "mnk":
        return letter in str(config.pad) and str(config.pad) != "none"
    try:
        value = _value(config, _NAMES.get(trait, trait))
    except AttributeError as error:
        raise usage_error(f"{trait}: {error}") from None
    return {"true": True, "false": False}.get(str(value), value)


def chosen_kernels(config: Mapping[str, Any], op: str, arch: str) -> list[str]:
    """The kernels of the arch's rule set that have one of the values of each trait and each size of the tile."""
    traits = {**config.get("tile_config", {}), **config.get("trait_config", {})}
    wanted = {name: _values(name, given) for name, given in traits.items() if name not in OF_PROBLEMS}
    types = _values("data_type", traits.get("data_type", [None]))
    left = [KernelConfig(kernel) for dtype in types for kernel in kernels(op=op, arch=arch, rule_set=config.get("rule_set"), dtype=dtype)
            if kernel.available]
    for name, values in wanted.items():
        there = {_have(one, name) for one in left}
        left = [one for one in left if _have(one, name) in values]
        if not left:
            raise usage_error(f"{name}: no {op} kernel of {arch} has one of {', '.join(map(str, values))}; those left have "
                              f"{', '.join(sorted(map(str, there)))}")
    return [one.name for one in left]


def _kernel_words(path: pathlib.Path, given: argparse.Namespace, op: str, folder: str) -> list[str]:
    """The words of sweep that stand for a config: a rule set's name, the original's form, or kernel fields as lists."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise usage_error(f"{path}: line {error.lineno}: {error.msg}") from None
    config = {"rule_set": config} if isinstance(config, str) else config
    if not isinstance(config, dict) or not {"rule_set", "trait_config", "tile_config"} & set(config):
        if given.max_kernels:
            raise usage_error(f"--max-kernels: {path} names kernels by their fields; leave it out")
        return ["--config", str(path)]
    if op != "gemm":
        variant = config.get("variant", "forward")
        if variant not in VARIANTS:
            raise usage_error(f"{path}: variant is '{variant}'; need one of {', '.join(VARIANTS)}")
        op = VARIANTS[variant]
    restricted = {**config.get("tile_config", {}), **config.get("trait_config", {})}.keys() - set(OF_PROBLEMS)
    if not restricted and not given.max_kernels:
        return ["--rule-set", config["rule_set"]] if "rule_set" in config else []
    names = chosen_kernels(config, op, given.arch)[:given.max_kernels or None]
    listed = pathlib.Path(folder) / f"{path.stem}.json"
    listed.write_text(json.dumps(names), encoding="utf-8")
    return ["--config", str(listed)]


# ---- columns -------------------------------------------------------------------------------------------------------


def conv_columns(problem: Problem) -> dict[str, Any]:
    """The sizes of a convolution as the original names them; a dimension that there is not has size 1."""
    def three(text: str, missing: int) -> list[int]:
        sizes = [int(part.partition(":")[0]) for part in str(text).split("x")]
        return [missing] * (3 - len(sizes)) + sizes
    fields = problem.fields
    named = {"N": fields["n"], "C": fields["c"], "K": fields["k"], "G": fields.get("g", 1)}
    named |= dict(zip(("Di", "Hi", "Wi"), three(fields["in"], 1))) | dict(zip("ZYX", three(fields["filter"], 1)))
    for name, missing in (("stride", 1), ("pad", 0), ("dilation", 1)):
        named |= {f"{name}_{letter}": size for letter, size in zip("dhw", three(fields.get(name, missing), missing))}
    return named


def gemm_columns(problem: Problem) -> dict[str, Any]:
    return {"M": problem.fields["m"], "N": problem.fields["n"], "K": problem.fields["k"]}


def _with_columns(rows: Iterator[dict[str, str]], columns: Columns, listed: Sequence[str]) -> Iterator[dict[str, Any]]:
    places = {problem: place for place, problem in enumerate(listed)}
    for row in rows:
        place = places.setdefault(row["problem"], len(places))
        us = float(row["time_us"] or 0) if row["status"] == "ok" else 0.0
        yield {"kernel": row["kernel_name"], "problem_idx": place, **columns(Problem(row["problem"])), "latency_ms": us / 1e3 if us else "",
               "non_zero": int(us > 0), **row}


def write_columns(records: pathlib.Path, out: pathlib.Path, columns: Columns, listed: Sequence[str]) -> int:
    """Writes the original's columns and, behind them, those of the records; returns how many there are. `listed` are the problems, by
    whose places they are numbered."""
    with open(records, encoding="utf-8", newline="") as file:
        made = list(_with_columns(csv.DictReader(file), columns, listed))
    with new_file(out) as part, open(part, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(made[0]) if made else ["kernel"], lineterminator="\n")
        table.writeheader()
        table.writerows(made)
    return len(made)


# ---- the command line ----------------------------------------------------------------------------------------------


def _device(arch: str) -> list[str]:
    backend = _library.call("tilewise_archs", arch)["archs"][0]["backend"]
    return ["--device", "cpu", "--arch", arch] if backend == "cpu" else ["--device", f"{backend}:0"]


def benchmark(words: Sequence[str], op: str, description: str) -> int:
    """The main function of a script: `op` is gemm, or a convolution whose config says which."""
    flags = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("configs", metavar="CONFIG", nargs="+", type=pathlib.Path, help="JSON: the original's form, kernel fields as lists, "
                       "or a rule set's name")
    flags.add_argument("--arch", required=True, help="such as sm_90a")
    flags.add_argument("--problems", metavar="FILE|SET", required=True, help="problems, one a line, or a set")
    flags.add_argument("--csv", metavar="FILE.csv", required=True, type=pathlib.Path, help="the table; FILE.records.csv beside it has what "
                       "was measured, and is gone on with")
    flags.add_argument("--device", help="where to measure, such as cuda:1 or emulated:sm_90a; the arch's first device unless given")
    flags.add_argument("--workers", metavar="N", help="compilers at a time")
    flags.add_argument("--kernel-timeout", metavar="S", help="seconds that a kernel may take (30)", default="30")
    flags.add_argument("--max-kernels", metavar="N", type=int, default=0, help="only the first N kernels of a config; 0: all of them")
    flags.add_argument("--batch-size", metavar="N", help="taken, and of no effect: kernels of a problem are measured together")
    given = flags.parse_args(words)
    listed = list(dict.fromkeys(problem_of(line, given.problems) for line in problem_lines(given.problems)[1]))
    records = given.csv.with_suffix(".records.csv")
    where = ["--device", given.device] if given.device else _device(given.arch)
    more = ["--timeout", given.kernel_timeout, *(["--workers", given.workers] if given.workers else [])]
    with tempfile.TemporaryDirectory(prefix="tilewise-") as folder:
        for path in given.configs:
            which = _kernel_words(path, given, op, folder)
            done = subprocess.run([command(), "sweep", "--problems", given.problems, "--out", records, "--resume", *where, *which, *more],
                                  check=False)
            if done.returncode:
                return done.returncode
    count = write_columns(records, given.csv, gemm_columns if op == "gemm" else conv_columns, listed)
    print(f"{given.csv}: {count} records")
    return 0
