# SPDX-License-Identifier: MIT
"""Kernels for the cases: a random set, built once and kept in a cache, so that the workers need no compiler. Half of it comes
from rule sets, as many of each kind; half from what may run random problems, with other types than the usual ones."""
import collections
import concurrent.futures
import json
import random
import re

from cases import CHANNELS, LAYOUTS, problem_text
from formats import BYTES, FLOATS
from library import Context, Refused, build, kernels
from problem import USUAL_OUTPUT, Problem

# Groups, and channels of each, that kernels are made for.
CHANNEL_COUNTS = ((1, 64, 64), (1, 32, 48), (4, 16, 16), (8, 8, 8), (8, 4, 4), (1, 3, 32), (64, 1, 1), (32, 1, 2))
ATTEMPTS = 12


def _kind(name):
    """All of a name but its sizes and types: operation, layout, pipeline, options."""
    words = [word for word in re.split("[_@]", name) if word not in BYTES]
    return "_".join(word if word.startswith("comp") else re.sub(r"\d+", "", word) for word in words)


def _suited(r, config):
    """A problem that the kernel of a config may be made for."""
    rank = config.get("ndim", 2)
    if config["op"] == "gemm":
        layout = r.choice(LAYOUTS) if config["layout"] == "any" else config["layout"]
        sizes = [r.choice((1, 4, 16, 64, 64, 128)) for _ in range(3)]
        text = f"gemm:m={sizes[0]},n={sizes[1]},k={sizes[2]}"
    else:
        layout = r.choice(CHANNELS[rank]) if config["layout"] == "any" else config["layout"]
        groups, c, k = r.choice(CHANNEL_COUNTS)
        tap = 1 if config.get("specialization", "").startswith("1x1") else 3
        size = r.choice((4, 8, 12)) if rank < 3 else 4
        text = (f"{config['op']}:n={r.choice((1, 2))},g={groups},c={groups * c},k={groups * k},in={'x'.join([str(size)] * rank)},"
                f"filter={config.get('ct_filter', tap)},stride={config.get('ct_stride', r.choice((1, 1, 2)))},"
                f"dilation={config.get('ct_dilation', 1)},pad={tap // 2}")
    text += f",dtype={config['dtype']},layout={layout}"
    for key, field in (("b", "dtype_b"), ("out", "dtype_out"), ("math", "math")):
        text += f",{key}={config[field]}" if field in config else ""
    return text + (",packed_b=1" if config["pipeline"] == "preshuffle" else "")


def _by_kind(context, arch, rule_sets, count, r):
    """Kernels of the rule sets, of every kind as many, with problems that they take."""
    groups = collections.defaultdict(dict)
    for rule_set in rule_sets:
        for kernel in kernels(arch, rule_set):
            groups[_kind(kernel["name"])][kernel["name"]] = kernel["config"]
    order = [list(group.items()) for _, group in sorted(groups.items())]
    r.shuffle(order)
    chosen = {}
    while order and len(chosen) < count:
        for group in order:
            name, config = group.pop(r.randrange(len(group)))
            text = _taken(context, name, [_suited(r, config) for _ in range(ATTEMPTS)])
            if text:
                chosen[name] = {"kernel": name, "problem": text, "whole": True}
            if len(chosen) == count:
                break
        order = [group for group in order if group]
    return chosen


def _taken(context, name, texts):
    """The first problem that the kernel takes; None where it takes none."""
    for text in texts:
        try:
            if context.candidates(text, kernel=name):
                return text
        except Refused:
            pass
    return None


def _typed(r, text):
    """The problem with another output or second input now and then, and packed weights."""
    problem = Problem(text)
    if problem.dtype in ("fp8", "bf8") and r.random() < 0.4:
        text += ",b=" + r.choice(("fp8", "bf8"))
    if r.random() < 0.5:
        wanted = r.choice(("int8", "int32", "fp32", "fp16", "bf16") if problem.dtype == "int8" else tuple(FLOATS))
        if wanted != USUAL_OUTPUT.get(problem.dtype, problem.dtype):
            text += ",out=" + wanted
    if problem.op in ("conv_fwd", "conv_bwd_data") and r.random() < 0.1:
        text += ",packed_b=1"
    return text


def _by_problem(context, rule_sets, count, r):
    """Kernels that may run random problems."""
    chosen = {}
    for _ in range(10 * count):
        whole = r.random() < 0.5
        text = _typed(r, problem_text(r, whole=whole))
        try:
            names = context.candidates(text, r.choice(rule_sets))
        except Refused:
            continue
        if names:
            name = names[0] if r.random() < 0.3 else r.choice(names)
            chosen[name] = {"kernel": name, "problem": text, "whole": whole}
        if len(chosen) == count:
            break
    return chosen


def make(path, device, arch, rule_sets, count, jobs):
    """Chooses the set of a device, builds what the cache lacks, and writes it down. Why some do not compile."""
    r = random.Random(1)
    context = Context(device, arch, 1)
    chosen = _by_kind(context, context.arch, rule_sets, count // 2, r) | _by_problem(context, rule_sets, count - count // 2, r)
    entries = list(chosen.values())
    if device == "cpu":
        failed = build([entry["kernel"] for entry in entries], jobs)
    else:
        failed = _prepare_each(context, entries, jobs)
    kept = [entry | {"key": key_of(entry["problem"])} for entry in entries if entry["kernel"] not in failed]
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


def _prepare_each(context, entries, jobs):
    """Kernels of GPUs are compiled when a problem is prepared."""
    def why_not(entry):
        try:
            with context.prepare(entry["problem"], entry["kernel"]):
                return ""
        except Refused as refusal:
            return str(refusal)

    with concurrent.futures.ThreadPoolExecutor(jobs) as threads:
        reasons = threads.map(why_not, entries)
    return {entry["kernel"]: why for entry, why in zip(entries, reasons) if why}
