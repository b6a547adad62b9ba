#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records of sweeps as one Parquet file, under the name and flags of the original's script; `tilewise convert` does it:

    heuristics/convert_csv_to_parquet.py --input forward.csv --output forward.parquet --arch sm_90a
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from tilewise._verbs import run  # noqa: E402  the package of this checkout

flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
flags.add_argument("--input", metavar="FILE", nargs="+", required=True, help="CSV files of sweeps")
flags.add_argument("--output", metavar="FILE", required=True, help="the Parquet file")
flags.add_argument("--arch", help="refuse records of another arch")
given = flags.parse_args()
sys.exit(run("convert", [*given.input, "--out", given.output, *(["--arch", given.arch] if given.arch else [])]))
