# SPDX-License-Identifier: MIT
"""The common part of benchmarks/gpu_gemm.py and gpu_conv.py: their options, and the run of all problems in a child process, which is
started again after a fault or when a problem takes too long. Needs the standard library alone.
"""
import argparse
import datetime
import json
import pathlib
import re
import signal
import sys

from gpu_child import Child, ChildDied
from gpu_problems import ROOT, choose_cases
from gpu_report import FAILED, LINE_TITLE, OK, environment_text, line_of

WORKER = [sys.executable, str(ROOT / "benchmarks/gpu_worker.py")]
SECONDS_TO_START = 180  # torch's first import on a fresh machine reads gigabytes


def pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


def make_parser(description: str, problems: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=pathlib.Path, default=ROOT / "benchmarks/problems" / problems, metavar="FILE",
                        help="problem texts, one a line, each with its family behind a #")
    parser.add_argument("--strategy", choices=["measure", "auto", "rules"], default="measure",
                        help="how tilewise chooses its kernel (default: measure)")
    parser.add_argument("--only", type=pattern, metavar="REGEX", help="problems whose 'FAMILY TEXT' it is found in")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N of them")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all results, after each problem anew")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help=f"write the tables as Markdown")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="for one problem (default: 120)")
    return parser


def write_json(options: argparse.Namespace, content: dict) -> None:
    if options.json:  # whole at any time: who ends this process reads it
        partial = options.json.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        partial.replace(options.json)


def compare_one(child: Child, case, options: argparse.Namespace) -> dict:
    request = {"ask": "compare", "problem": case.text, "family": case.family, "strategy": options.strategy}
    try:
        child.start(SECONDS_TO_START)
        return child.ask(request, options.timeout)
    except ChildDied as death:
        return {"problem": case.text, "family": case.family, "dtype": case.dtype, "status": FAILED, "reason": str(death)}


def compare_all(child: Child, cases: list, options: argparse.Namespace, environment: dict) -> list[dict]:
    results: list[dict] = []
    print(LINE_TITLE, flush=True)
    try:
        for case in cases:
            results.append(compare_one(child, case, options))
            print(line_of(results[-1]), flush=True)
            write_json(options, {"environment": environment, "strategy": options.strategy, "results": results})
    except KeyboardInterrupt:
        print(f"stopped after {len(results)} of {len(cases)} problems", file=sys.stderr)
    return results


def read_cases(name: str, options: argparse.Namespace, parse_cases) -> list:
    """The problems that the options leave; none, after a word on stderr, where there are none or they cannot be read."""
    try:
        cases = choose_cases(parse_cases(options.problems.read_text(encoding="utf-8")), options.only, options.limit)
    except (OSError, ValueError) as error:
        print(f"{name}: {options.problems}: {error}", file=sys.stderr)
        return []
    if not cases:
        print(f"{name}: no problem of {options.problems} is left; see --only and --limit", file=sys.stderr)
    return cases


def run(name: str, options: argparse.Namespace, parse_cases, summary_table, markdown, instead=None) -> int:
    """The whole comparison; `instead` may do something else with the child and return an exit code."""
    cases = read_cases(name, options, parse_cases)
    if not cases:
        return 2
    with Child(WORKER) as child:
        try:
            child.start(SECONDS_TO_START)
            environment = {"date": datetime.date.today().isoformat(), **child.ask({"ask": "environment"}, SECONDS_TO_START)}
            print(environment_text(environment), flush=True)
            code = instead(child, options, environment) if instead else None
            if code is not None:
                return code
        except ChildDied as death:
            print(f"{name}: {death}; need torch with CUDA, a GPU, and the library (make build)", file=sys.stderr)
            return 2
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time limit's: what was measured is still shown
        results = compare_all(child, cases, options, environment)
    print("\n" + summary_table(results), flush=True)
    if options.markdown:
        options.markdown.write_text(markdown(results, environment, options.strategy), encoding="utf-8")
    return 0 if all(result["status"] == OK for result in results) else 1
