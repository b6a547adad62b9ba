# SPDX-License-Identifier: MIT
"""Measurements as tables of pandas: what `tilewise sweep` writes as CSV, and what `tilewise convert` makes of it.

    records = tilewise.records.read("part1.csv", "part2.csv")
    best = records[records.is_best]

A row is one kernel on one problem. Columns of the file come first; `problem_*` and `kernel_*` are what the texts of problem and kernel
say, from the library; `is_valid` and `is_best` mark times that count and the least of each problem. Needs pandas and pyarrow:
pip install 'tilewise[report]'.
"""
from __future__ import annotations

import datetime
import io
import json
import os
import pathlib
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from . import _library
from ._files import new_file, read_text, whole_records
from ._verbs import usage_error
from .api import find_kernel, select
from .problem import Problem

NEEDED = ["schema", "device", "problem", "kernel_name", "status", "time_us"]
NUMBERS = ["clock_mhz", "predicted_us", "time_us", "spread", "samples", "time2_us", "max_error", "tflops", "gbps", "roof", "reference_us"]
TEXTS = ["device", "problem", "kernel_name", "status", "repro"]
# Two records of the same are measurements of one thing; the newer counts.
KEY = ["device", "problem", "kernel_name", "code_digest"]
# They follow from others, so that the narrow form is without them.
COMPUTED = ["kernel_id", "kernel_family", "predicted_us", "tflops", "gbps", "roof", "is_valid", "is_best"]
LEAST = "roof_us"  # of the narrow form: the least time that a problem could take, from which the part of the roof follows
# How exact they are says little: as many digits as are worth keeping in the narrow form.
ROUNDED = {"spread": 2, "max_error": 2, "clock_mhz": 4, "reference_us": 4}
_METADATA = b"tilewise"
_LEVEL = 19  # of compression: files are written once


# ---- reading -------------------------------------------------------------------------------------------------------


def _check(frame: pd.DataFrame, path: pathlib.Path) -> None:
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise usage_error(f"{path}: no table of records: it has no column {', '.join(missing)}")
    for name in TEXTS:
        if name in frame.columns and not all(isinstance(one, str) for one in frame[name].unique()):
            raise usage_error(f"{path}: no table of records: column {name} has something else than texts")
    for name in set(NUMBERS) & set(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise usage_error(f"{path}: no table of records: column {name} has something else than numbers")
        wrong = (frame[name] < 0) | (np.isinf(frame[name]) & (name != "max_error"))
        if wrong.any():
            row = int(wrong.argmax())
            raise usage_error(f"{path}: record {row + 1}: column {name} is {frame[name].iloc[row]}; need a number from 0, or nothing")


def _from_csv(path: pathlib.Path) -> pd.DataFrame:
    try:
        frame = pd.read_csv(io.StringIO(whole_records(read_text(path)), newline=""), dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise usage_error(f"{path}: no table of records: {error}") from None
    for name in set(NUMBERS) & set(frame.columns):
        numbers = pd.to_numeric(frame[name].mask(frame[name] == ""), errors="coerce")
        wrong = numbers.isna() & (frame[name] != "")
        if wrong.any():
            row = int(wrong.argmax())
            raise usage_error(f"{path}: record {row + 1}: column {name} is '{frame[name].iloc[row]}'; need a number, or nothing")
        frame[name] = numbers
    _check(frame, path)
    return frame


def _from_parquet(path: pathlib.Path) -> pd.DataFrame:
    import pyarrow
    import pyarrow.parquet

    try:
        with open(path, "rb") as file:
            frame = pyarrow.parquet.read_table(file).to_pandas()
    except (pyarrow.ArrowException, ValueError) as error:
        raise usage_error(f"{path}: no Parquet file: {error}") from None
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            frame[name] = frame[name].astype(object)
    _check(frame, path)
    if "repro" in frame.columns:
        frame["repro"] = [one.replace("{problem}", shlex.quote(problem)).replace("{kernel}", shlex.quote(kernel))
                          for one, problem, kernel in zip(frame["repro"], frame["problem"], frame["kernel_name"])]
    if LEAST in frame.columns:
        frame["roof"] = (frame[LEAST] / frame["time_us"]).where(frame["status"] == "ok")
    return frame.drop(columns=[name for name in frame.columns if name.startswith("problem_") or name == LEAST])


def read_file(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The records of one file, CSV or Parquet, as they are there."""
    where = pathlib.Path(path)
    return _from_parquet(where) if where.suffix == ".parquet" else _from_csv(where)


def _refuse_mixed(frames: Sequence[pd.DataFrame], paths: Sequence[Any]) -> None:
    for column in ("schema", "device"):
        seen: dict[str, Any] = {}
        for frame, path in zip(frames, paths):
            for value in frame[column].unique():
                seen.setdefault(value, path)
        if len(seen) > 1:
            raise usage_error(f"records of {len(seen)} {column}s: " + "; ".join(f"{value} in {path}" for value, path in seen.items()) +
                              "; convert them apart, or give --mix to have them in one table")


def merged(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One table of several, sorted by problem and kernel, in which the newest of the same measurement stands for all."""
    together = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    if "started" in together.columns:
        together = together.sort_values("started", kind="stable")
    key = [name for name in KEY if name in together.columns]
    together = together.drop_duplicates(key, keep="last")
    return together.sort_values(["problem", "kernel_name"], kind="stable").reset_index(drop=True)


def read(*paths: str | os.PathLike[str], mix: bool = False) -> pd.DataFrame:
    """The records of files, merged and complete. Those of several devices or schemas are refused unless mix=True."""
    if not paths:
        raise usage_error("no files of records are given")
    return joined([read_file(path) for path in paths], paths, mix)


def joined(frames: Sequence[pd.DataFrame], paths: Sequence[Any], mix: bool = False) -> pd.DataFrame:
    """What read() makes of the records of files."""
    if not mix:
        _refuse_mixed(frames, paths)
    return complete(merged(frames))


# ---- what follows from other columns -------------------------------------------------------------------------------


def _problem_facts(text: str) -> dict[str, Any]:
    problem = Problem(text)
    facts = {f"problem_{name}": value for name, value in problem.fields.items()}
    facts |= {f"problem_gemm_{name}": value for name, value in problem.gemm.items()}
    if problem.output:
        facts["problem_output"] = "x".join(map(str, problem.output))
    return facts | {"problem_flops": problem.flops, "problem_bytes": problem.bytes}


def _kernel_facts(name: str) -> dict[str, Any]:
    kernel = find_kernel(name)
    return {f"kernel_{field}": value for field, value in kernel.config.items()} | {"kernel_id": kernel.id, "kernel_family": kernel.family}


def _facts(texts: pd.Series, facts_of: Any) -> pd.DataFrame:
    """The fields of each text, one row per entry of the series. A field at its default is missing."""
    codes, distinct = pd.factorize(texts)
    rows = []
    for text in distinct:
        try:
            rows.append(facts_of(text))
        except _library.TilewiseError as error:
            raise usage_error(f"{texts.name} '{text}': {error}") from None
    table = pd.DataFrame(rows)
    for name in table.columns:
        if table[name].dtype == object:
            table[name] = table[name].astype("category")
    return table.iloc[codes].set_axis(texts.index)


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """With what the texts of problem and kernel say, rates, and which times count and are best."""
    if frame.empty:
        raise usage_error("there are no records")
    problems, kernels = _facts(frame["problem"], _problem_facts), _facts(frame["kernel_name"], _kernel_facts)
    valid = (frame["status"] == "ok") & (frame["time_us"] > 0)
    time = frame["time_us"].where(valid)
    best = time == time.groupby([frame["device"], frame["problem"]]).transform("min")
    rates = {"tflops": problems["problem_flops"] / time / 1e6, "gbps": problems["problem_bytes"] / time / 1e3}
    added = pd.concat([pd.DataFrame({**rates, "is_valid": valid, "is_best": best}), problems, kernels], axis=1)
    replaced = [name for name in added.columns if name in frame.columns]
    return pd.concat([frame.assign(**{name: added[name] for name in replaced}), added.drop(columns=replaced)], axis=1)


def predicted(frame: pd.DataFrame) -> pd.Series:
    """What the analytic model says today of each record, in microseconds, some milliseconds for each problem; nothing of CPUs, where it
    depends on threads that are not known here."""
    found: dict[tuple[str, str], float] = {}
    of_gpus = frame[~frame["kernel_arch"].astype(str).str.startswith("cpu")]
    for (arch, problem), group in of_gpus.groupby([of_gpus["kernel_arch"].astype(str), "problem"]):
        left = set(group["kernel_name"])
        for rule_set in ("default", "full"):  # the whole set only for kernels that the default one leaves out
            for one in select(problem, arch=arch, rule_set=rule_set, strategy="rules").candidates if left else ():
                if one.name in left and one.predicted_us:
                    found[problem, one.name] = one.predicted_us
                    left.remove(one.name)
    return pd.Series([found.get(key) for key in zip(frame["problem"], frame["kernel_name"])], frame.index, dtype=float)


# ---- writing -------------------------------------------------------------------------------------------------------


def narrow(frame: pd.DataFrame) -> pd.DataFrame:
    """Without what can be computed again: texts as categories, numbers as float32, sorted by problem."""
    kept = [name for name in frame.columns if name not in COMPUTED and name != "repro"
            and not name.startswith(("problem_", "kernel_")) or name == "kernel_name"]
    made = frame[kept].sort_values(["problem", "kernel_name"], kind="stable").reset_index(drop=True)
    for name in kept:
        if name in NUMBERS:
            made[name] = made[name].astype("float32")
        if name in ROUNDED:
            made[name] = [float(f"{x:.{ROUNDED[name] - 1}e}") for x in made[name]]
            made[name] = made[name].astype("float32")
    ordered = frame.sort_values(["problem", "kernel_name"], kind="stable").reset_index(drop=True)
    if "roof" in frame.columns:
        least = (ordered["roof"] * ordered["time_us"]).where(ordered["is_valid"])
        made[LEAST] = least.groupby([ordered["device"], ordered["problem"]]).transform("median").astype("float32")
    if "repro" in frame.columns:
        made["repro"] = [one.replace(shlex.quote(problem), "{problem}").replace(shlex.quote(kernel), "{kernel}")
                         for one, problem, kernel in zip(ordered["repro"], ordered["problem"], ordered["kernel_name"])]
    return made


def _metadata(frame: pd.DataFrame) -> bytes:
    def distinct(name: str) -> list[str]:
        return sorted(map(str, frame[name].unique())) if name in frame.columns else []
    started = distinct("started")
    return json.dumps({"version": _library.version(), "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
                       "records": len(frame), "devices": distinct("device"), "drivers": distinct("driver"),
                       "sets": dict(one.split("@", 1) for one in distinct("set") if "@" in one),  # NAME@HASH
                       "first": started[0] if started else "", "last": started[-1] if started else ""}).encode()


def write_parquet(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Writes a table, with what metadata() tells of it."""
    import pyarrow
    import pyarrow.parquet

    texts = [name for name in frame.columns if frame[name].dtype == object or isinstance(frame[name].dtype, (pd.StringDtype, pd.CategoricalDtype))]
    floats = [name for name in frame.columns if frame[name].dtype in ("float32", "float64") and name not in (*ROUNDED, LEAST)]
    table = pyarrow.Table.from_pandas(frame.astype({name: "category" for name in texts}), preserve_index=False)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _METADATA: _metadata(frame)})
    dictionaries = [name for name in frame.columns if name not in floats and frame[name].dtype != bool]
    with new_file(path) as part:
        pyarrow.parquet.write_table(table, part, compression="zstd", compression_level=_LEVEL, use_dictionary=dictionaries,
                                    use_byte_stream_split=floats)


def metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of a Parquet file of records: version, date, records, devices, drivers, sets with their hashes."""
    import pyarrow.parquet

    told = (pyarrow.parquet.read_schema(path).metadata or {}).get(_METADATA)
    if told is None:
        raise usage_error(f"{path}: no Parquet file of records")
    found: dict[str, Any] = json.loads(told)
    return found


def write_csv(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Writes the columns of a sweep, which every other command reads."""
    own = [name for name in frame.columns if name not in ("is_valid", "is_best") and not name.startswith("problem_")
           and (not name.startswith("kernel_") or name in ("kernel_name", "kernel_id", "kernel_family"))]
    with new_file(path) as part:
        frame[own].to_csv(part, index=False)
