#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random cases on the C interface against a reference in float64.

    run.py --arch cpu-avx2 --cases 200000 --jobs 2     many cases
    run.py --arch cpu-avx2 --problem TEXT ...          one case, as a failure's line says

Workers are processes of their own: one that a guard page ends, or that hangs, is a failure with its case, and the next one
goes on behind it.
"""
import argparse
import collections
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time

import cases
import pool
import trial
from library import ROOT, Refused, UNSUPPORTED

HANG_SECONDS = 120
CASES_PER_WORKER = 2000  # what was prepared stays in memory
ATTEMPTS = 4             # named kernels that refuse a problem before the library chooses


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, emulated:sm_90a, cuda:0")
    parser.add_argument("--arch", default="", help="of a CPU: cpu-generic, cpu-avx2, cpu-avx512")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time", type=float, default=0, help="seconds after which no case begins; 0: no limit")
    parser.add_argument("--kernels", type=int, default=0, help="how many kernels to compile besides those built in")
    parser.add_argument("--rule-sets", default="default,full-tests", help="where these are from")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build" / "adversary")
    parser.add_argument("--problem", default="", help="one case: its text; --seed is that of its values")
    parser.add_argument("--style", default="normal", choices=trial.STYLES)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--rule-set", default="")
    parser.add_argument("--strategy", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def load_pool(options, jobs):
    if not options.kernels:
        return [], {}
    name = f"{options.device}-{options.arch or 'own'}-{options.kernels}-{options.rule_sets}.json".replace(":", "-")
    return pool.load(options.cache / name, options.device, options.arch, options.rule_sets.split(","), options.kernels,
                     jobs)


# ---- a worker ---------------------------------------------------------------------------------------------------------

def run_one(machine, case, entries):
    """Runs the case; a named kernel that does not take it gives way to another, and at last to the library's choice."""
    if case.kernel == cases.ANY_BUILTIN:
        names = machine.context(case.threads).candidates(case.problem, "builtin")
        case.kernel = names[case.seed % len(names)]
    for attempt in range(ATTEMPTS):
        print("case", case.arguments(), flush=True)
        try:
            return trial.run(machine, case)
        except Refused as refusal:
            if refusal.status != UNSUPPORTED:
                raise trial.Wrong(f"refused, {refusal}") from refusal
        if not case.kernel:
            break
        similar = [entry for entry in entries if entry["key"] == trial.key_of(case.problem)]
        if not similar:
            break
        case.kernel = similar[(case.seed + attempt) % len(similar)]["kernel"]
    case.kernel = ""
    print("case", case.arguments(), flush=True)
    return trial.run(machine, case)


def work(options):
    entries, _ = load_pool(options, 1)
    for entry in entries:
        entry["key"] = trial.key_of(entry["problem"])
    machine = trial.Machine(options.device, options.arch)
    for index in range(options.first, options.first + options.cases):
        case = cases.make(options.seed, index, entries, machine.is_cpu)
        try:
            kernel = run_one(machine, case, entries)
            print("done", index, kernel or "refused", flush=True)
        except trial.Wrong as fault:
            print("wrong", index, str(fault).replace("\n", " "), flush=True)
        except trial.NoCode:
            print("done", index, "no code", flush=True)


# ---- those who watch them -----------------------------------------------------------------------------------------------

class Tally:
    """What was seen, shared by the threads that watch workers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.done = 0
        self.kernels = collections.Counter()
        self.failures = []

    def add(self, kernel=None, failure=None):
        with self.lock:
            self.done += 1
            if kernel:
                self.kernels[kernel] += 1
            if failure:
                self.failures.append(failure)
                print(failure, flush=True)


def command(options, extra):
    words = [sys.executable, str(pathlib.Path(__file__).resolve()), "--device", options.device]
    words += ["--arch", options.arch] if options.arch else []
    return words + extra


def watch(options, first, count, deadline, tally):
    """Lets workers run cases [first, first + count); returns when all are done or time is up."""
    end = first + count
    while first < end and time.monotonic() < deadline:
        extra = ["--worker", "--first", str(first), "--cases", str(end - first), "--seed", str(options.seed), "--kernels",
                 str(options.kernels), "--rule-sets", options.rule_sets, "--cache", str(options.cache)]
        worker = subprocess.Popen(command(options, extra), stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE,
                                  env=worker_environment(options))
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in worker.stdout] + [lines.put(None)],
                         daemon=True).start()
        case, hung = "", False
        while True:
            try:
                line = lines.get(timeout=HANG_SECONDS)
            except queue.Empty:
                hung = True
                worker.kill()
                continue
            if line is None:
                break
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "case":
                case = rest
                continue
            index, _, rest = rest.partition(" ")
            first, failed = int(index) + 1, word == "wrong"
            tally.add(None if failed else rest, f"FAIL {rest}\n  {repro(options, case)}" if failed else None)
            case = ""
            if time.monotonic() > deadline:
                worker.terminate()
                worker.wait()
                return
        status = worker.wait()
        if status != 0:
            what = "hung" if hung else signal.Signals(-status).name if status < 0 else worker.stderr.read()
            tally.add(None, f"FAIL {what}\n  {repro(options, case)}")
            first = first + 1 if status < 0 else end  # a fault of these tests would come again


def repro(options, case):
    where = f"--device {options.device}" + (f" --arch {options.arch}" if options.arch else "")
    return f"TILEWISE_CACHE_DIR={options.cache / 'kernels'} {sys.executable} tests/adversary/run.py {where} {case}"


def worker_environment(options):
    """Without a compiler: what is not built in comes from the cache."""
    return os.environ | {"TILEWISE_CACHE_DIR": str(options.cache / "kernels"), "TILEWISE_CXX": "/nonexistent",
                         "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run_many(options):
    os.environ["TILEWISE_CACHE_DIR"] = str(options.cache / "kernels")
    started = time.monotonic()
    entries, failed = load_pool(options, options.jobs)
    tally = Tally()
    for kernel, why in failed.items():
        tally.failures.append(f"FAIL does not compile: {kernel}: {why[:300]}")
        print(tally.failures[-1], flush=True)
    deadline = time.monotonic() + (options.time or 1e9)
    chunks = queue.Queue()
    for first in range(options.first, options.first + options.cases, CASES_PER_WORKER):
        chunks.put((first, min(CASES_PER_WORKER, options.first + options.cases - first)))

    def serve():
        while True:
            try:
                first, count = chunks.get_nowait()
            except queue.Empty:
                return
            watch(options, first, count, deadline, tally)

    servers = [threading.Thread(target=serve) for _ in range(options.jobs)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    refused, without = tally.kernels.pop("refused", 0), tally.kernels.pop("no code", 0)
    print(f"{options.device} {options.arch}: {tally.done - without} cases, {len(tally.failures)} wrong; {len(tally.kernels)} "
          f"kernels ({len(entries)} compiled), {refused} impossible problems refused, {without} without a kernel left out; "
          f"{time.monotonic() - started:.0f} s")
    return 1 if tally.failures else 0


def run_given(options):
    case = trial.Case(options.problem, options.style, options.seed, options.kernel, options.rule_set, options.strategy,
                      options.threads)
    try:
        print("right:", trial.run(trial.Machine(options.device, options.arch), case) or "refused")
        return 0
    except (trial.Wrong, Refused) as fault:
        print("wrong:", fault)
        return 1


def main():
    options = arguments()
    if options.worker:
        return work(options)
    return run_given(options) if options.problem else run_many(options)


if __name__ == "__main__":
    sys.exit(main())
