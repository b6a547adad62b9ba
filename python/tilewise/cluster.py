# SPDX-License-Identifier: MIT
"""tilewise cluster: a sweep on many devices at once, through Dask. It takes the words of `tilewise sweep`:

    tilewise cluster --problems gemm_training --device cuda:0 --out records.csv --scheduler tcp://host:8786
    tilewise cluster --problems mine.txt --device cpu --out records.csv --local 3

One problem is one task, `tilewise sweep` of that problem on a worker; this process alone writes. Others do the problems of a worker
that is lost. `--resume` leaves out what is recorded, as on one machine. Workers of `--scheduler` say
what they have: `dask worker ADDRESS --nthreads 1 --resources device=1`, one for each device.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Mapping, Sequence

from ._cluster_task import Task, problem_lines, problem_of, sweep_one
from ._cluster_writer import Writer
from ._verbs import Parser, run, usage_error
from .problem_sets import Entry, problems_hash

RESOURCE = "device"
MOST_LOST = 3  # as often may the worker of a problem be lost
SPLITS = ("--shard", "--budget")  # words of sweep that divide a list of problems, which the workers share here


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="tilewise cluster", description="Sweep on many devices at once, through Dask.", allow_abbrev=False,
                                     epilog="All other options are those of tilewise sweep, and are handed on to it.")
    parser.add_argument("--problems", metavar="FILE|SET", required=True, help="problems, one a line, or a set")
    parser.add_argument("--out", metavar="FILE.csv", required=True, help="where records are written")
    parser.add_argument("--device", required=True, help="the device of each worker, by its name there")
    parser.add_argument("--resume", action="store_true", help="go on with a file: problems that are recorded are left out")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler whose workers have the resource device=1")
    where.add_argument("--local", metavar="N", type=int, help="N workers on this machine")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _check(given: argparse.Namespace, others: Sequence[str]) -> None:
    out = pathlib.Path(given.out)
    if not out.resolve().parent.is_dir():
        raise usage_error(f"--out {given.out}: its folder does not exist")
    if out.exists() and out.stat().st_size and not given.resume:
        raise usage_error(f"--out {given.out}: there are records already; give --resume to go on with them, or another name")
    if given.local is not None and given.local < 1:
        raise usage_error(f"--local {given.local}: need at least 1 worker")
    for word in others:
        if word.partition("=")[0] in SPLITS:
            raise usage_error(f"{word} is not for a cluster, whose workers share the problems; leave it out")


def _sweep(client, tasks: Mapping[str, Task], writer: Writer) -> list[str]:  # type: ignore[no-untyped-def]
    """Runs the tasks where a device is free, and writes their records as they come; returns what went wrong."""
    from distributed import as_completed

    # Pure functions of their words would be computed once: two tasks are never the same.
    futures = {client.submit(sweep_one, task, pure=False, resources={RESOURCE: 1}, retries=0): problem
               for problem, task in tasks.items()}
    errors = []
    for future in as_completed(list(futures)):
        problem = futures.pop(future)
        if future.status == "finished":
            header, records, error = future.result()
            writer.add(header, records)
            errors += [f"{problem}: {error}"] if error else []
        else:
            errors.append(f"{problem}: {future.exception()}")
        future.release()
        if sys.stderr.isatty():
            print(f"\r{len(tasks) - len(futures)} of {len(tasks)} problems, {writer.count} records ", end="", file=sys.stderr, flush=True)
    return errors


def _client(given: argparse.Namespace):  # type: ignore[no-untyped-def]
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": MOST_LOST})
    if given.scheduler:
        try:
            return Client(given.scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise usage_error(f"--scheduler {given.scheduler}: {error}") from None
    cluster = LocalCluster(n_workers=given.local, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
                           resources={RESOURCE: 1})
    return Client(cluster)


def main(words: Sequence[str]) -> int:
    given, others = _parser().parse_known_args(words)
    _check(given, others)
    import distributed  # noqa: F401  what is missing is said before anything is begun

    name, lines = problem_lines(given.problems)
    problems = {problem_of(line, given.problems): Task(line, name, given.device, tuple(others)) for line in lines}
    digest = problems_hash([Entry(problem, "") for problem in problems])
    writer = Writer(given.out, given.resume, {"set": f"{name}@{digest}"})
    left = [problem for problem in problems if problem not in writer.done]
    tasks = {problem: problems[problem] for problem in left}
    client = _client(given)
    try:
        errors = _sweep(client, tasks, writer) if tasks else []
    finally:
        cluster = client.cluster
        client.close()
        if cluster is not None:
            cluster.close()
        writer.close()
    facts = {"out": given.out, "problems": len(problems), "resumed": len(problems) - len(left), "records": writer.count, "errors": errors}
    print(json.dumps(facts) if given.json else
          f"{given.out}: {writer.count} records of {len(left)} problems, {len(problems) - len(left)} were there")
    for error in errors:
        print(f"tilewise cluster: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(run("cluster", sys.argv[1:]))
