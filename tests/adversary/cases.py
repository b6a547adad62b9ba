# SPDX-License-Identifier: MIT
"""Random cases: a number makes one. Sizes are small, those of 1 and around tiles frequent, and a few problems impossible."""
import math
import random

from problem import CONV_OPS, OPERATIONS, USUAL_OUTPUT, Problem
from trial import Case

OPS = ("gemm", *CONV_OPS)
DTYPES = ("fp32", "fp16", "bf16", "fp8", "bf8", "int8")
LAYOUTS = ("rcr", "rrr", "crr", "ccr", "rcc", "rrc", "crc", "ccc")
CHANNELS = {1: ("nwgc", "ngcw"), 2: ("nhwgc", "ngchw"), 3: ("ndhwgc", "ngcdhw")}
EDGES = (7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)
MOST_ELEMENTS = 60_000
MOST_PRODUCTS = 4_000_000


def make(seed, index, pool, threads=(1, 2), impossible=0.04):
    """The case with this number. `pool` are kernels that were built, as dicts of kernel and problem."""
    r = random.Random(seed * 1_000_003 + index)
    entry = r.choice(pool) if pool and r.random() < 0.5 else None
    case = Case("", seed=r.getrandbits(32), threads=r.choice(threads))
    while not case.problem:
        case.problem = _problem(r, Problem(entry["problem"]) if entry else None)
    problem = Problem(case.problem)
    case.style = r.choices(("normal", "whole", "wide", "special", "tiny", "extreme", "ones"),
                           (45, 15, 10, 12, 6, 8, 4))[0]
    if entry:
        case.kernel = entry["kernel"]
    elif "out" not in problem.fields:
        case.rule_set, case.strategy = r.choice((("", ""), ("", ""), ("builtin", ""), ("builtin", ""), ("", "first-fit")))
    if r.random() < impossible:
        case.problem, case.kernel = _broken(r, problem), ""
    return case


def _size(r, most=300):
    kind = r.random()
    if kind < 0.22:
        return 1
    if kind < 0.6:
        return min(most, r.randint(2, 9))
    if kind < 0.8:
        return min(most, r.randint(10, 40))
    if kind < 0.95:
        return min(most, r.choice(EDGES))
    return r.randint(1, most)


def _text(op, fields):
    return op + ":" + ",".join(f"{key}={value}" for key, value in fields.items())


def _problem(r, like):
    """A text, or "" where the numbers came out too large. `like` gives the types, and often more."""
    if like:
        op = like.op
    else:
        op = r.choices(OPS, (40, 25, 18, 17))[0]
    fields = _gemm(r, like) if op == "gemm" else _conv(r, like)
    types = _types(r, op, like)
    fields |= types
    fields |= _options(r, op, types["dtype"], like)
    text = _text(op, fields)
    return "" if _too_large(Problem(text)) else text


def _types(r, op, like):
    if like:
        return {key: like.fields[key] for key in ("dtype", "b", "out", "packed_b") if key in like.fields}
    fields = {"dtype": r.choice(DTYPES if op in ("gemm", "conv_fwd") else DTYPES[:-1])}
    if r.random() < 0.1 and op == "gemm":  # convolutions with packed weights are not built in
        fields["packed_b"] = 1
    return fields


def _too_large(problem):
    if problem.impossible():
        return True
    sizes = [math.prod(operand.shape) for operand in problem.operands().values()]
    if problem.is_conv:
        products = sizes[0] * sizes[1] / max(1, problem.c if problem.op != "conv_bwd_data" else problem.k)
    else:
        products = problem.batch * problem.m * problem.n * problem.k
    return max(sizes) > MOST_ELEMENTS or products > MOST_PRODUCTS


def _gemm(r, like):
    fields = {key: _size(r) for key in "mnk"}
    fields["layout"] = like.layout if like and "@cpu" not in like.text and r.random() < 0.7 else r.choice(LAYOUTS)
    if r.random() < 0.3:
        fields["batch"] = _size(r, 5)
    stored = {}
    for which, (high, wide), letter in zip("abc", ("mk", "kn", "mn"), fields["layout"]):
        stored[which] = (fields[high], fields[wide]) if letter == "r" else (fields[wide], fields[high])
    for which, (rows, length) in stored.items():
        leading = length
        if r.random() < 0.35:
            fields["ld" + which] = leading = length + r.choice((0, 1, 3, 5, 8, 16, 31))
        if "batch" in fields and r.random() < 0.4:
            span = (rows - 1) * leading + length
            choices = (span, span + 1, span + 7, rows * leading + 16)
            fields["batch_stride_" + which] = r.choice(choices if which == "c" else choices + (0, 0, 1, leading))
    return fields


def _conv(r, like):
    rank = len(like.size) if like else r.choices((1, 2, 3), (30, 50, 20))[0]
    layout = CHANNELS[rank][like.layout not in CHANNELS[rank][:1] if like and r.random() < 0.6 else r.random() < 0.4]
    most = {1: 60, 2: 14, 3: 7}[rank]
    size = [r.choice((1, 1, 2, r.randint(1, most), r.randint(1, most), r.randint(1, most))) for _ in range(rank)]
    if like and r.random() < 0.75:
        groups, c, k = like.groups, like.c // like.groups, like.k // like.groups
        taps, stride, dilation = list(like.filter), list(like.stride), list(like.dilation)
        size = [max(1, extent) for extent in size]
        pads = [list(pad) for pad in like.pads]
    else:
        groups, c, k = _channels(r)
        taps = [r.choice((1, 1, 2, 3, 3, 3, 4, 5, 7, extent)) for extent in size]
        taps = [min(tap, 4) if rank == 3 else tap for tap in taps]
        stride = [r.choice((1, 1, 1, 2, 2, 3, 5)) for _ in range(rank)]
        dilation = [r.choice((1, 1, 1, 1, 2, 3)) for _ in range(rank)]
        pads = [[r.choice((0, 0, 1, 1, 2, 3, tap)) for _ in range(2)] for tap in taps]
    if r.random() < 0.5:
        pads = [[pad[0], pad[0]] for pad in pads]
    for d in range(rank):  # a filter that does not fit gets more room
        while dilation[d] * (taps[d] - 1) + 1 > size[d] + sum(pads[d]):
            pads[d][r.randrange(2)] += 1
    join = lambda numbers: "x".join(str(number) for number in numbers)
    return {"n": r.choice((1, 1, 2, 3, 5)), "g": groups, "c": groups * c, "k": groups * k, "in": join(size),
            "filter": join(taps), "stride": join(stride), "dilation": join(dilation),
            "pad": "x".join(f"{before}:{after}" for before, after in pads), "layout": layout}


def _channels(r):
    """Groups, and channels of each: dense, grouped, or depthwise."""
    kind = r.random()
    if kind < 0.4:
        return 1, _size(r, 70), _size(r, 70)
    if kind < 0.75:
        return r.choice((2, 3, 4, 5, 8, 16)), _size(r, 33), _size(r, 33)
    return _size(r, 70), 1, r.choice((1, 1, 1, 2, 3))


def _options(r, op, dtype, like):
    fields = {}
    if r.random() < 0.4:
        chain = [r.choice(OPERATIONS[1:]) for _ in range(r.choice((1, 1, 1, 2, 3)))]
        if op != "conv_bwd_weight" and r.random() < 0.6:
            chain.insert(r.randint(0, len(chain)), "bias")
        fields["epilogue"] = "+".join(chain)
    elif op != "conv_bwd_weight" and r.random() < 0.2:
        fields["epilogue"] = "bias"
    if r.random() < 0.2:
        fields["d"] = "+".join(r.choice(("add", "mul")) for _ in range(r.choice((1, 1, 2, 3, 4))))
    if r.random() < 0.25:
        fields["beta"] = 1
    if r.random() < 0.2:
        fields["scale"] = r.choice(("tensor", "row")) if op == "gemm" else "tensor"
    if like and like.math != "strict":
        fields["math"] = like.math
    elif r.random() < 0.12:
        fields["math"] = r.choice(("fast", "tf32", "tf32x3") if dtype == "fp32" else ("fast",))
    if r.random() < 0.5:
        fields["align"] = r.choice((4, 4, 4, 8, 32, 64) if dtype in ("fp32", "int8") else (1, 2, 2, 4, 8, 64))
    if r.random() < 0.08:
        fields["deterministic"] = 1
    if r.random() < 0.1:
        fields["workspace"] = r.choice(("0", "4096", "64K", "64M"))
    return fields


def _broken(r, problem):
    """The problem with one number that cannot be."""
    fields = dict(problem.fields)
    if problem.is_conv:
        key = r.choice(("n", "g", "c", "k", "in", "filter", "stride", "dilation", "odd"))
        if key == "odd":
            fields["g"], fields["c"] = 3, 4
            return _text(problem.op, fields)
        extents = fields[key].split("x")
        extents[r.randrange(len(extents))] = "0"
        fields[key] = "x".join(extents)
        return _text(problem.op, fields)
    key = r.choice(("m", "n", "k", "batch", "ld"))
    if key != "ld":
        fields[key] = 0
        return _text(problem.op, fields)
    which = r.randrange(3)
    if problem.stored[which][1] == 1:
        fields["m"] = 0
    else:
        fields["ld" + "abc"[which]] = problem.stored[which][1] - 1
    return _text(problem.op, fields)
