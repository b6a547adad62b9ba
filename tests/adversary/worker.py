# SPDX-License-Identifier: MIT
"""A process that runs cases, one line before each and one after. Whoever started it reads the lines; where they end is the
case that ended the process."""
import cases
import pool
import trial
from library import UNSUPPORTED, Refused

ATTEMPTS = 4  # named kernels that refuse a problem before the library chooses


def run_one(machine, case, entries):
    """Runs the case; a named kernel that does not take it gives way to another, and at last to the library's choice."""
    if case.kernel == cases.ANY_BUILTIN:
        names = machine.context(case).candidates(case.problem, "builtin")
        case.kernel = names[case.seed % len(names)]
    key = pool.key_of(case.problem)
    similar = [entry["kernel"] for entry in entries if entry["key"] == key] if case.kernel else []
    for attempt in range(ATTEMPTS):
        print("case", case.arguments(), flush=True)
        try:
            return trial.run(machine, case)
        except Refused as refusal:
            if refusal.status != UNSUPPORTED:
                raise trial.Wrong(f"refused, {refusal}") from refusal
        if not similar:
            break
        case.kernel = similar[(case.seed + attempt) % len(similar)]
    case.kernel = ""
    print("case", case.arguments(), flush=True)
    return trial.run(machine, case)


def work(device, arch, kernels, seed, numbers):
    """Cases of these numbers; `kernels` is the file of the set."""
    entries = pool.load(kernels)
    machine = trial.Machine(device, arch)
    for number in numbers:
        case = cases.make(seed, number, entries, machine.is_cpu)
        try:
            print("done", number, run_one(machine, case, entries) or "refused", flush=True)
        except trial.Wrong as fault:
            print("wrong", number, str(fault).replace("\n", " "), flush=True)
        except trial.NoCode:
            print("done", number, "no code", flush=True)
