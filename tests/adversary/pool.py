# SPDX-License-Identifier: MIT
"""Kernels for the cases: a random set of those that rule sets list for random problems, built once and kept in a cache, so
that the workers need no compiler."""
import json
import random

from cases import problem_text
from formats import FLOATS
from library import Context, Refused, build
from problem import USUAL_OUTPUT, Problem


def _typed(r, text):
    """The problem with another output or second input now and then, and packed weights."""
    problem = Problem(text)
    if problem.dtype in ("fp8", "bf8") and r.random() < 0.4:
        text += ",b=" + r.choice(("fp8", "bf8"))
    if r.random() < 0.35:
        wanted = r.choice(("int8", "int32", "fp32", "fp16", "bf16") if problem.dtype == "int8" else tuple(FLOATS))
        if wanted != USUAL_OUTPUT.get(problem.dtype, problem.dtype):
            text += ",out=" + wanted
    if problem.op in ("conv_fwd", "conv_bwd_data") and r.random() < 0.1:
        text += ",packed_b=1"
    return text


def choose(context, is_cpu, rule_sets, count, seed):
    """Kernels that rule sets have for random problems, a third of them the first choice."""
    r = random.Random(seed)
    chosen = {}
    for _ in range(40 * count):
        whole = r.random() < (0.2 if is_cpu else 0.6)
        text = _typed(r, problem_text(r, whole=whole))
        try:
            names = context.candidates(text, r.choice(rule_sets))
        except Refused:
            continue
        if names:
            name = names[0] if r.random() < 0.3 else r.choice(names)
            chosen.setdefault(name, {"kernel": name, "problem": text, "whole": whole})
        if len(chosen) == count:
            break
    return list(chosen.values())


def make(path, device, arch, rule_sets, count, jobs):
    """Chooses the set of a device, builds what the cache lacks, and writes it down. Why some do not compile."""
    context = Context(device, arch, 1)
    chosen = choose(context, device == "cpu", rule_sets, count, 1) if count else []
    if device == "cpu":
        failed = build([entry["kernel"] for entry in chosen], jobs)
    else:
        failed = _prepare_each(context, chosen)
    kept = [entry | {"key": key_of(entry["problem"])} for entry in chosen if entry["kernel"] not in failed]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=0), encoding="utf-8")
    return failed


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def key_of(text):
    """Kernels are for one operation, number of dimensions, types and form of B."""
    problem = Problem(text)
    return [problem.op, len(problem.size) if problem.is_conv else 0, problem.dtype, problem.dtype_b, problem.out,
            problem.packed_b]


def _prepare_each(context, chosen):
    """What an emulated device runs is compiled when a problem is prepared."""
    failed = {}
    for entry in chosen:
        try:
            with context.prepare(entry["problem"], entry["kernel"]):
                pass
        except Refused as refusal:
            failed[entry["kernel"]] = str(refusal)
    return failed
