# SPDX-License-Identifier: MIT
"""Random cases: a number makes one. Sizes are small, those of 1 and around tiles frequent, and a few problems impossible."""
import math
import random

from problem import CONV_OPS, OPERATIONS, Problem
from trial import Case

OPS = ("gemm", *CONV_OPS)
DTYPES = ("fp32", "fp16", "bf16", "fp8", "bf8", "int8")
LAYOUTS = ("rcr", "rrr", "crr", "ccr", "rcc", "rrc", "crc", "ccc")
CHANNELS = {1: ("nwgc", "ngcw"), 2: ("nhwgc", "ngchw"), 3: ("ndhwgc", "ngcdhw")}
EDGES = (7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)
WHOLE = (8, 8, 16, 16, 24, 32, 32, 40, 48, 64, 64, 80, 96, 128)
MOST_ELEMENTS = 60_000
MOST_PRODUCTS = 4_000_000
ANY_BUILTIN = "any"  # in place of a kernel: one of those built in, by the case's seed
CHOICES = (("", "", ""), ("", "", ""), ("", "builtin", ""), (ANY_BUILTIN, "", ""), ("", "", "first-fit"))
STYLES = {"normal": 45, "whole": 15, "wide": 10, "special": 12, "tiny": 6, "extreme": 8, "ones": 4}


def make(seed, index, pool, is_cpu, impossible=0.04):
    """The case with this number. `pool` are kernels that were built, as dicts of kernel, problem and whole; a GPU has no
    others."""
    r = random.Random(seed * 1_000_003 + index)
    entry = r.choice(pool) if pool and (not is_cpu or r.random() < 0.5) else None
    case = Case(problem_text(r, entry, is_cpu), r.choices(list(STYLES), STYLES.values())[0], r.getrandbits(32))
    if entry and r.random() < (0.8 if is_cpu else 0.95):
        case.kernel = entry["kernel"]
    elif not entry:
        case.kernel, case.rule_set, case.strategy = r.choice(CHOICES)
    if is_cpu:
        case.threads = r.choice((1, 2))
        if r.random() < 0.001:
            case.problem, case.kernel, case.style = _deep(r), ANY_BUILTIN, "extreme"
    if r.random() < impossible:
        case.problem, case.kernel = _broken(r, Problem(case.problem)), ""
    return case


def problem_text(r, entry=None, is_cpu=True, whole=None):
    """A problem that can be. An entry of the pool gives it types, and often more that its kernel needs."""
    whole = entry["whole"] if entry and r.random() < 0.8 else r.random() < 0.2 if whole is None else whole
    while True:
        text = _Maker(r, Problem(entry["problem"]) if entry else None, is_cpu, whole).text()
        if not _too_large(Problem(text)):
            return text


def _text(op, fields):
    return op + ":" + ",".join(f"{key}={value}" for key, value in fields.items())


def _too_large(problem):
    if problem.impossible():
        return True
    sizes = [math.prod(operand.shape) for operand in problem.operands().values()]
    if problem.is_conv:
        products = sizes[0] * sizes[1] / (problem.k if problem.op == "conv_bwd_data" else problem.c)
    else:
        products = problem.batch * problem.m * problem.n * problem.k
    return max(sizes) > MOST_ELEMENTS or products > MOST_PRODUCTS


class _Maker:
    """A random text, possibly too large. `like` is a problem to take after, `whole` prefers multiples of 8."""

    def __init__(self, r, like, is_cpu, whole):
        self.r, self.like, self.is_cpu, self.whole = r, like, is_cpu, whole

    def text(self):
        op = self.like.op if self.like else self.r.choices(OPS, (40, 25, 18, 17))[0]
        fields = self._gemm() if op == "gemm" else self._conv()
        fields |= self._types(op)
        return _text(op, fields | self._options(op, fields["dtype"]))

    def _often(self, share):
        return self.r.random() < share

    def _size(self, most=300):
        if self.whole and self._often(0.8):
            return min(most, self.r.choice(WHOLE))
        kind = self.r.random()
        if kind < 0.22:
            return 1
        if kind < 0.6:
            return min(most, self.r.randint(2, 9))
        if kind < 0.8:
            return min(most, self.r.randint(10, 40))
        if kind < 0.95:
            return min(most, self.r.choice(EDGES))
        return self.r.randint(1, most if kind < 0.98 else 8 * most)

    def _types(self, op):
        if self.like:
            return {key: self.like.fields[key] for key in ("dtype", "b", "out", "packed_b") if key in self.like.fields}
        fields = {"dtype": self.r.choice(DTYPES if op in ("gemm", "conv_fwd") else DTYPES[:-1])}
        if op == "gemm" and self._often(0.1):  # convolutions with packed weights are not built in
            fields["packed_b"] = 1
        return fields

    def _gemm(self):
        r = self.r
        fields = {key: self._size() for key in "mnk"}
        keeps_layout = self.like and not self.is_cpu and self._often(0.95)
        fields["layout"] = self.like.layout if keeps_layout else r.choice(LAYOUTS)
        if self._often(0.3):
            fields["batch"] = r.choice((1, 2, 3, 5, 5))
        for which, (high, wide), letter in zip("abc", ("mk", "kn", "mn"), fields["layout"]):
            rows, length = (fields[high], fields[wide]) if letter == "r" else (fields[wide], fields[high])
            leading = length
            if self._often(0.35):
                gaps = (0, 8, 16, 32) if self.whole else (0, 1, 3, 5, 8, 16, 31)
                fields["ld" + which] = leading = length + r.choice(gaps)
            if "batch" in fields and self._often(0.4):
                span = (rows - 1) * leading + length
                choices = (span, rows * leading + 16) if self.whole else (span, span + 1, span + 7, rows * leading + 16)
                fields["batch_stride_" + which] = r.choice(choices if which == "c" else choices + (0, 0, 1, leading))
        return fields

    def _conv(self):
        r, like = self.r, self.like
        rank = len(like.size) if like else r.choices((1, 2, 3), (30, 50, 20))[0]
        layout = CHANNELS[rank][self._often(0.4)]
        if like and self._often(0.5 if self.is_cpu else 0.95):
            layout = like.layout
        most = {1: 60, 2: 14, 3: 7}[rank]
        size = [r.choice((1, 1, 2, r.randint(1, most), r.randint(1, most), r.randint(1, most))) for _ in range(rank)]
        if like and self._often(0.75):
            groups, c, k = like.groups, like.c // like.groups, like.k // like.groups
            taps, stride, dilation = list(like.filter), list(like.stride), list(like.dilation)
            pads = [list(pad) for pad in like.pads]
        else:
            groups, c, k = self._channels()
            taps, stride, dilation, pads = self._window(size)
        if self._often(0.5):
            pads = [[pad[0], pad[0]] for pad in pads]
        for d in range(rank):  # a filter that does not fit gets more room
            while dilation[d] * (taps[d] - 1) + 1 > size[d] + sum(pads[d]):
                pads[d][r.randrange(2)] += 1
        join = lambda numbers: "x".join(str(number) for number in numbers)
        return {"n": r.choice((1, 1, 2, 3, 5)), "g": groups, "c": groups * c, "k": groups * k, "in": join(size),
                "filter": join(taps), "stride": join(stride), "dilation": join(dilation),
                "pad": "x".join(f"{before}:{after}" for before, after in pads), "layout": layout}

    def _window(self, size):
        """Filter, stride, dilation and padding: often the same in every dimension, as networks have them."""
        r, rank = self.r, len(size)
        if self._often(0.4):
            tap = r.choice((1, 2, 3, 3, 3, 4 if rank == 3 else 5))
            return [tap] * rank, [r.choice((1, 1, 2))] * rank, [1] * rank, [[tap // 2, tap // 2] for _ in range(rank)]
        taps = [r.choice((1, 1, 2, 3, 3, 3, 4, 5, 7, extent)) for extent in size]
        taps = [min(tap, 4) if rank == 3 else tap for tap in taps]
        stride = [r.choice((1, 1, 1, 2, 2, 3, 5)) for _ in range(rank)]
        dilation = [r.choice((1, 1, 1, 1, 2, 3)) for _ in range(rank)]
        return taps, stride, dilation, [[r.choice((0, 0, 1, 1, 2, 3, tap)) for _ in range(2)] for tap in taps]

    def _channels(self):
        """Groups, and channels of each: dense, grouped, or depthwise."""
        kind = self.r.random()
        if kind < 0.4:
            return 1, self._size(70), self._size(70)
        if kind < 0.75:
            return self.r.choice((2, 3, 4, 5, 8, 16)), self._size(33), self._size(33)
        return self._size(70), 1, self.r.choice((1, 1, 1, 2, 3))

    def _options(self, op, dtype):
        r, fields = self.r, {}
        if self._often(0.4):
            chain = [r.choice(OPERATIONS[1:]) for _ in range(r.choice((1, 1, 1, 2, 3)))]
            if op != "conv_bwd_weight" and self._often(0.6):
                chain.insert(r.randint(0, len(chain)), "bias")
            if self._often(0.2):  # a D tensor before the last operation
                chain.insert(r.randint(0, len(chain) - 1), r.choice(("add", "mul")))
            fields["epilogue"] = "+".join(chain)
        elif op != "conv_bwd_weight" and self._often(0.2):
            fields["epilogue"] = "bias"
        if self._often(0.2):
            fields["d"] = "+".join(r.choice(("add", "mul")) for _ in range(r.choice((1, 1, 2, 3))))
        if self._often(0.25):
            fields["beta"] = 1
        if self._often(0.2):
            fields["scale"] = r.choice(("tensor", "row")) if op == "gemm" else "tensor"
        if self.like and self.like.math != "strict":
            fields["math"] = self.like.math
        elif self._often(0.12):
            fields["math"] = r.choice(("fast", "tf32", "tf32x3") if dtype == "fp32" else ("fast",))
        if self._often(0.1 if self.whole else 0.5):
            fields["align"] = r.choice((1, 2, 2, 4, 4, 8, 32, 64))
        if self._often(0.08):
            fields["deterministic"] = 1
        if self._often(0.1):
            fields["workspace"] = r.choice(("0", "4096", "64K", "64M"))
        return fields


def _deep(r):
    """Sums of int8 that pass 2^31."""
    k = r.choice((131_072, 131_073, 140_000, 280_000))
    if r.random() < 0.7:
        return f"gemm:m={r.randint(1, 5)},n={r.choice((1, 8, 17, 35))},k={k},dtype=int8,layout={r.choice(LAYOUTS)}"
    return f"conv_fwd:n=1,g=1,c={k // 9 + 1},k={r.randint(1, 5)},in=3x3,filter=3x3,dtype=int8,layout={r.choice(CHANNELS[2])}"


def _broken(r, problem):
    """The problem with one number that cannot be."""
    fields = dict(problem.fields)
    if problem.is_conv:
        key = r.choice(("n", "g", "c", "k", "in", "filter", "stride", "dilation", "odd"))
        if key == "odd":
            fields["g"], fields["c"] = 3, 4
            return _text(problem.op, fields)
        extents = fields.get(key, "1").split("x")
        extents[r.randrange(len(extents))] = "-1" if key == "n" else "0"
        fields[key] = "x".join(extents)
        return _text(problem.op, fields)
    key, which = r.choice(("m", "n", "k", "batch", "ld")), r.randrange(3)
    if key == "ld" and problem.stored[which][1] > 1:
        fields["ld" + "abc"[which]] = problem.stored[which][1] - 1
    else:
        fields["batch" if key == "ld" else key] = -1
    return _text(problem.op, fields)
