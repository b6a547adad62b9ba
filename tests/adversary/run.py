#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random cases on the C interface against a reference in float64.

    run.py --cases 200000 --kernels 100 --jobs 2       shared by the CPU archs that run here, a tenth as many by emulated GPUs
    run.py --arch cpu-avx2 --cases 1000                all on one
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

import pool
import trial
import worker
from library import ROOT, Context, Refused

CPU_ARCHS = ("cpu-generic", "cpu-avx2", "cpu-avx512", "cpu-amx")
GPUS = ("emulated:sm_90a", "emulated:sm_80")
GPU_SHARE = 10           # one case on an emulated GPU for so many on a CPU
HANG_SECONDS = 120
CASES_PER_WORKER = 2000  # what was prepared stays in memory
PLACE = ROOT / "build" / "adversary"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="", help="cpu, emulated:sm_90a, cuda:0")
    parser.add_argument("--arch", default="", help="of a CPU: " + ", ".join(CPU_ARCHS))
    parser.add_argument("--cases", type=int, default=1000, help="how many: on the device or arch that is given, or on all CPU "
                        "archs together, with a tenth as many on emulated GPUs")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1, help="of the cases; with --problem, of its values")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time", type=float, default=1e9, help="seconds on each device after which no case begins")
    parser.add_argument("--kernels", type=int, default=0, help="how many to compile for a CPU, besides those built in")
    parser.add_argument("--gpu-kernels", type=int, default=8, help="how many to compile for a GPU")
    parser.add_argument("--rule-sets", default="default,full-tests,full", help="where these are from")
    parser.add_argument("--problem", default="")
    parser.add_argument("--style", default="normal", choices=trial.STYLES)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--rule-set", default="")
    parser.add_argument("--strategy", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.device = options.device or ("cpu" if options.arch else "")
    return options


def places():
    """Device and arch of all that can be tested here."""
    found = []
    for arch in CPU_ARCHS:
        try:
            Context("cpu", arch, 1).close()
            found.append(("cpu", arch))
        except Refused:
            pass  # this CPU lacks what the arch needs
    return found + [(gpu, "") for gpu in GPUS]


def shared(options, found):
    """Device, arch and numbers of cases for each place: every number once on a CPU, the first of them once on a GPU."""
    for total, group in ((options.cases, [place for place in found if place[0] == "cpu"]),
                         (-(-options.cases // GPU_SHARE), [place for place in found if place[0] != "cpu"])):
        ends = [options.first + total * i // len(group) for i in range(len(group) + 1)] if group else []
        for (device, arch), first, end in zip(group, ends, ends[1:]):
            yield device, arch, range(first, end)


class Tally:
    """The findings, shared by the threads that watch workers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.done = 0
        self.kernels = collections.Counter()
        self.failures = 0

    def add(self, kernel):
        with self.lock:
            self.done += 1
            self.kernels[kernel] += 1

    def fail(self, what, repro=""):
        with self.lock:
            self.done += 1
            self.failures += 1
            print(f"FAIL {what}\n  {repro}", flush=True)


class Campaign:
    """Cases with these numbers on one device."""

    def __init__(self, options, device, arch, numbers):
        self.options, self.device, self.arch, self.numbers = options, device, arch, numbers
        self.kernels = PLACE / f"{arch or device.replace(':', '-')}-{os.getpid()}.json"
        self.tally = Tally()
        self.deadline = 0.0

    def run(self):
        """Whether nothing was wrong."""
        options, started = self.options, time.monotonic()
        count = options.kernels if self.device == "cpu" else options.gpu_kernels
        for kernel, why in pool.make(self.kernels, self.device, self.arch, options.rule_sets.split(","), count,
                                     options.jobs).items():
            self.tally.fail(f"does not compile: {kernel}: {why}")
        self.deadline = time.monotonic() + options.time
        chunks = queue.SimpleQueue()
        for first in self.numbers[::CASES_PER_WORKER]:
            chunks.put((first, min(self.numbers.stop, first + CASES_PER_WORKER)))
        servers = [threading.Thread(target=self._serve, args=(chunks,)) for _ in range(options.jobs)]
        for server in servers:
            server.start()
        for server in servers:
            server.join()
        self.kernels.unlink()
        tally = self.tally
        refused, without = tally.kernels.pop("refused", 0), tally.kernels.pop("no code", 0)
        print(f"{self.arch or self.device}: {tally.done - without} cases, {tally.failures} wrong; {len(tally.kernels)} "
              f"kernels, {refused} impossible problems refused, {without} problems without a kernel left out; "
              f"{time.monotonic() - started:.0f} s", flush=True)
        return tally.failures == 0

    def _serve(self, chunks):
        while not chunks.empty():
            try:
                first, end = chunks.get_nowait()
            except queue.Empty:
                return
            while first < end and time.monotonic() < self.deadline:
                first = self._watch(first, end)

    def _where(self):
        return ["--device", self.device] + (["--arch", self.arch] if self.arch else [])

    def _watch(self, first, end):
        """Lets one worker run cases [first, end); the first that is left when it ended."""
        command = [sys.executable, os.path.abspath(__file__), *self._where(), "--worker", str(self.kernels), "--first",
                   str(first), "--cases", str(end - first), "--seed", str(self.options.seed)]
        # Without a compiler: what is not built in comes from the cache.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=os.environ | {"TILEWISE_CXX": "/nonexistent"}) as process:
            lines = queue.SimpleQueue()
            threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
            case, hung = "", False
            while True:
                try:
                    line = lines.get(timeout=HANG_SECONDS)
                except queue.Empty:
                    hung = True
                    process.kill()
                    continue
                if line is None:
                    break
                word, _, rest = line.partition(" ")
                if word == "case":
                    case = rest
                    continue
                number, _, rest = rest.partition(" ")
                first = int(number) + 1
                if word == "wrong":
                    self.tally.fail(rest, self._repro(case))
                else:
                    self.tally.add(rest)
                if time.monotonic() > self.deadline:
                    process.kill()
                    return end
            status = process.wait()
            if status == 0:
                return end
            what = "hung" if hung else signal.Signals(-status).name if status < 0 else process.stderr.read()
            self.tally.fail(what, self._repro(case))
            return first + 1 if status < 0 else end  # a fault of these tests would come again

    def _repro(self, case):
        return " ".join(["tests/adversary/run.py", *self._where(), case])


def _read(stream, lines):
    for line in stream:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def run_given(options):
    case = trial.Case(options.problem, options.style, options.seed, options.kernel, options.rule_set, options.strategy,
                      options.threads)
    try:
        print("right:", trial.run(trial.Machine(options.device, options.arch), case) or "refused")
        return True
    except (trial.Wrong, Refused) as fault:
        print("wrong:", fault)
        return False


def main():
    options = arguments()
    os.environ["TILEWISE_CACHE_DIR"] = str(PLACE / "kernels")
    os.environ["TILEWISE_EPILOGUES"] = "any"  # few kernels for many cases
    os.environ["TILEWISE_BACKGROUND"] = "0"  # the kernel that was chosen, not one that serves meanwhile
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if options.problem:
        return run_given(options)
    numbers = range(options.first, options.first + options.cases)
    if options.worker:
        worker.work(options.device, options.arch, options.worker, options.seed, numbers)
        return True
    given = [(options.device, options.arch, numbers)] if options.device else shared(options, places())
    return all([Campaign(options, *each).run() for each in given])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
