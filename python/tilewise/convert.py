# SPDX-License-Identifier: MIT
"""tilewise convert: merges the records of sweeps into one table, with what the names of problems and kernels say as columns:

    tilewise convert part1.csv part2.csv --out records.parquet
"""
from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

from . import records
from ._verbs import Parser, run, usage_error

SUFFIXES = (".parquet", ".csv")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="tilewise convert", description="Merge records into one table, with what the names of problems "
                                     "and kernels say as columns. Of records of the same measurement the newest counts.")
    parser.add_argument("records", metavar="RECORDS", nargs="+", help="files of records, CSV or Parquet")
    parser.add_argument("--out", metavar="FILE", required=True, help="the table: FILE.parquet, or FILE.csv without added columns")
    parser.add_argument("--narrow", action="store_true", help="leave out what can be computed again on reading (Parquet)")
    parser.add_argument("--measured", action="store_true", help="leave out what was skipped, for want of time or after faults")
    parser.add_argument("--mix", action="store_true", help="take records of several devices or schemas into one table")
    parser.add_argument("--arch", help="refuse records of another arch")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    suffix = pathlib.Path(given.out).suffix
    if suffix not in SUFFIXES:
        raise usage_error(f"--out {given.out}: need a name that ends in {' or '.join(SUFFIXES)}")
    if not pathlib.Path(given.out).resolve().parent.is_dir():
        raise usage_error(f"--out {given.out}: its folder does not exist")
    if given.narrow and suffix != ".parquet":
        raise usage_error(f"--narrow is a form of Parquet; --out is {given.out}")
    files = [records.read_file(path) for path in given.records]
    frame = records.joined(files, given.records, given.mix)
    if given.measured:
        frame = frame[frame["status"] != "skipped"].reset_index(drop=True)
        if frame.empty:
            raise usage_error("--measured: all records were skipped; tilewise sweep --resume measures them")
    archs = sorted(frame["kernel_arch"].astype(str).unique())
    if given.arch and archs != [given.arch]:
        raise usage_error(f"--arch {given.arch}: the records are of {', '.join(archs)}")
    if suffix == ".csv":
        records.write_csv(frame, given.out)
    else:
        records.write_parquet(records.narrow(frame) if given.narrow else frame, given.out)
    facts = {"out": given.out, "read": sum(map(len, files)), "records": len(frame), "valid": int(frame["is_valid"].sum()),
             "problems": frame["problem"].nunique(), "kernels": frame["kernel_name"].nunique(), "archs": archs,
             "bytes": pathlib.Path(given.out).stat().st_size}
    print(json.dumps(facts) if given.json else
          "{out}: {records} records of {read} read, {valid} valid, of {problems} problems and {kernels} kernels; {bytes} bytes".format(**facts))
    return 0


if __name__ == "__main__":
    sys.exit(run("convert", sys.argv[1:]))
