# SPDX-License-Identifier: MIT
"""Kernels for the cases: a random set of those that rule sets list for random problems, built once and kept in a cache, so
that the workers need no compiler."""
import json
import random

from cases import make
from formats import FLOATS, INTEGERS
from library import Context, Refused, build
from problem import Problem, USUAL_OUTPUT


def _typed(r, text):
    """The problem with another output or second input now and then."""
    problem = Problem(text)
    if problem.dtype in ("fp8", "bf8") and r.random() < 0.4:
        text += ",b=" + r.choice(("fp8", "bf8"))
    if r.random() < 0.35:
        wanted = r.choice([*INTEGERS, "fp32", "fp16", "bf16"] if problem.dtype == "int8" else list(FLOATS))
        if wanted != USUAL_OUTPUT.get(problem.dtype, problem.dtype):
            text += ",out=" + wanted
    return text


def choose(device, arch, rule_sets, count, seed):
    """Kernels that rule sets have for random problems, as dicts of kernel and problem. Half are the library's choice."""
    r = random.Random(seed)
    context = Context(device, arch, 1)
    chosen, index = {}, 0
    while len(chosen) < count and index < 40 * count:
        index += 1
        text = _typed(r, make(seed + 1, index, [], impossible=0).problem)
        try:
            names = context.candidates(text, r.choice(rule_sets))
        except Refused:
            continue
        if names:
            chosen.setdefault(names[0] if r.random() < 0.3 else r.choice(names), text)
    return [{"kernel": kernel, "problem": text} for kernel, text in chosen.items()]


def load(path, device, arch, rule_sets, count, seed, jobs):
    """The set of an arch, chosen and built where the file is not there yet. What does not compile is told and left out."""
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8")), {}
    chosen = choose(device, arch, rule_sets, count, seed)
    failed = build_for(device, arch, chosen, jobs)
    kept = [entry for entry in chosen if entry["kernel"] not in failed]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=0), encoding="utf-8")
    return kept, failed


def build_for(device, arch, chosen, jobs):
    if device == "cpu":
        return build([entry["kernel"] for entry in chosen], jobs)
    failed = {}
    context = Context(device, arch, 1)
    for entry in chosen:  # an emulated device compiles when a problem is prepared
        try:
            with context.prepare(entry["problem"], entry["kernel"]):
                pass
        except Refused as refusal:
            failed[entry["kernel"]] = str(refusal)
    return failed
