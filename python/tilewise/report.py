# SPDX-License-Identifier: MIT
"""tilewise report: one page about records, with all it needs inside, to look at in a browser:

    tilewise report records.parquet --out page.html
"""
from __future__ import annotations

import html
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import pandas as pd

from . import records
from ._files import new_file
from ._library import version
from ._verbs import Parser, run, usage_error

PAGE = pathlib.Path(__file__).resolve().parent / "report_page"
SCRIPTS = ("charts.js", "page.js")
DIGITS = 6  # of a time
# The columns of a record as the page has them.
TIMES = {"us": "time_us", "us2": "time2_us", "predicted": "predicted_us", "spread": "spread", "roof": "roof"}
PROBLEM = {"device": "device", "set": "set", "network": "network", "op": "problem_op", "dtype": "problem_dtype", "flops": "problem_flops",
           "bytes": "problem_bytes"}


def _column(values: pd.Series) -> list[float | None]:
    return [None if pd.isna(x) else float(f"{x:.{DIGITS}g}") for x in values]


def _problems(frame: pd.DataFrame) -> tuple[list[int], list[dict[str, Any]]]:
    """The place of each record's problem, and the problems, one for each device."""
    places = frame.groupby(["device", "problem"], sort=False).ngroup()
    first = frame.loc[~places.duplicated()]
    told = [{"text": row["problem"], **{name: row[column] if column in first.columns else "" for name, column in PROBLEM.items()}}
            for _, row in first.iterrows()]
    return places.tolist(), told


def _reference(frame: pd.DataFrame) -> list[tuple[str, float]]:
    """The times of the reference kernel in the order of measuring, each once."""
    if "reference_us" not in frame.columns or "started" not in frame.columns:
        return []
    known = frame[frame["reference_us"] > 0].sort_values("started", kind="stable")
    changed = known["reference_us"] != known["reference_us"].shift()
    return list(zip(known["started"][changed].astype(str), known["reference_us"][changed].astype(float)))


def _origin(frame: pd.DataFrame) -> str:
    parts = [", ".join(sorted(map(str, frame["device"].unique())))]
    if "driver" in frame.columns and (drivers := sorted({str(one) for one in frame["driver"].unique() if one})):
        parts.append(f"driver {', '.join(drivers)}")
    if "started" in frame.columns and (known := sorted({str(one) for one in frame["started"] if one})):
        parts.append(f"measured {known[0]} to {known[-1]}" if known[0] != known[-1] else f"measured {known[0]}")
    return " · ".join([*parts, f"tilewise {version()}"])


def page_data(frame: pd.DataFrame) -> dict[str, Any]:
    """The contents of the page, as plain values."""
    places, problems = _problems(frame)
    kernel_at, kernels = pd.factorize(frame["kernel_name"])
    family = frame.drop_duplicates("kernel_name").set_index("kernel_name")["kernel_family"].astype(str)
    status_at, statuses = pd.factorize(frame["status"])
    columns = {"problem": places, "kernel": kernel_at.tolist(), "status": status_at.tolist()}
    columns |= {name: _column(frame[column]) for name, column in TIMES.items() if column in frame.columns}
    failed = frame[~frame["is_valid"]]
    reason, repro = (failed[name] if name in failed.columns else pd.Series("", failed.index) for name in ("reason", "repro"))
    return {"origin": _origin(frame), "problems": problems, "kernels": [{"name": name, "family": family[name]} for name in kernels],
            "statuses": list(statuses), "records": columns, "failures": list(zip(failed.index.tolist(), reason, repro)),
            "reference": _reference(frame)}


def page(frame: pd.DataFrame, title: str) -> str:
    """The whole page; `frame` is what tilewise.records.read gives."""
    data = json.dumps(page_data(frame), allow_nan=False, separators=(",", ":"))
    parts = {"TITLE": html.escape(title), "STYLE": (PAGE / "page.css").read_text(encoding="utf-8"),
             "SCRIPT": "\n".join((PAGE / name).read_text(encoding="utf-8") for name in SCRIPTS),
             "DATA": data.replace("<", "\\u003c")}  # a name with </script> in it ends nothing
    text = (PAGE / "page.html").read_text(encoding="utf-8")
    for name, part in parts.items():  # the data, in which anything may stand, last
        text = text.replace(f"@{name}@", part)
    return text


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="tilewise report", description="Write a page about records, to look at in a browser. It "
                                     "needs no network and no other file.")
    parser.add_argument("records", metavar="RECORDS", nargs="+", help="files of records, CSV or Parquet")
    parser.add_argument("--out", metavar="FILE", required=True, help="the page, FILE.html")
    parser.add_argument("--title", default="Kernels that were measured", help="of the page")
    parser.add_argument("--mix", action="store_true", help="take records of several devices or schemas into one page")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(words)
    if not pathlib.Path(given.out).resolve().parent.is_dir():
        raise usage_error(f"--out {given.out}: its folder does not exist")
    frame = records.read(*given.records, mix=given.mix)
    if "predicted_us" not in frame.columns:  # the narrow form
        frame["predicted_us"] = records.predicted(frame)
    with new_file(given.out) as part:
        part.write_text(page(frame, given.title), encoding="utf-8")
    facts = {"out": given.out, "records": len(frame), "problems": frame["problem"].nunique(), "bytes": pathlib.Path(given.out).stat().st_size}
    print(json.dumps(facts) if given.json else "{out}: {records} records of {problems} problems; {bytes} bytes".format(**facts))
    return 0


if __name__ == "__main__":
    sys.exit(run("report", sys.argv[1:]))
