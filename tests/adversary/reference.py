# SPDX-License-Identifier: MIT
"""The result of a problem in float64: sums of products tap by tap, then everything that follows them, each with a bound
of what fp32 may be off by. Shares no code and no idea of order with the library."""
import dataclasses
import math

import numpy as np

from formats import FLOATS

UNIT = 2.0**-24            # roundoff of fp32
DOUBLE_UNIT = 2.0**-52     # more than that of double, in which what follows a sum that stays an integer is computed
LEAST = 2.0**-149          # the smallest number of fp32
NORMAL = 2.0**-126         # the smallest that is no denormal, in fp32 and bf16
LARGEST = (2 - 2.0**-23) * 2.0**127
TF32_UNITS = {"tf32": 2.0**-10, "tf32x3": 2.0**-19}  # what cutting an input loses
FP8_PRODUCTS = 32          # of a matrix instruction
PEAK_NORM = 8              # the power whose norm stands for the largest of many products
FUNCTION_UNITS = 16        # of an activation's argument
ERFC = np.frompyfunc(math.erfc, 1, 1)


@dataclasses.dataclass
class Expected:
    """Values, what they may be off by, where NaN is right as well, and where anything is."""
    value: np.ndarray
    error: np.ndarray
    or_nan: np.ndarray
    anything: np.ndarray


def natural(problem, name, stored):
    """An operand as mathematics has it: (batch, row, column), (image, pixels..., group, channel) or a filter."""
    if not problem.is_conv:
        which = 2 if name == "c" or name[0] == "d" else "ab".index(name)
        return stored if problem.layout[which] == "r" else stored.swapaxes(1, 2)
    is_weight = stored.ndim == len(problem.size) + 3 and name == {"conv_bwd_weight": "c"}.get(problem.op, "b")
    if is_weight or (name[0] == "d" and problem.op == "conv_bwd_weight") or problem.channels_last:
        return stored
    return np.moveaxis(stored, (1, 2), (-2, -1))


def sums(problem, a, b):
    """Sum of products, sum of their magnitudes, and where a factor that is no number meets padding."""
    finite = bool(np.isfinite(a).all() and np.isfinite(b).all())
    if not problem.is_conv:
        return (*_both(a, b, finite), np.zeros((problem.batch, problem.m, problem.n), bool), problem.k)
    return _Taps(problem).sums(a, b, finite)


def _product(a, b, finite):
    # A library of matrix products may take short cuts that only numbers allow.
    return a @ b if finite else np.einsum("...mk,...kn->...mn", a, b)


def _both(a, b, finite):
    return _product(a, b, finite), _product(np.abs(a), np.abs(b), finite)


class _Taps:
    """A convolution as one small product for each tap, over the pairs of pixels it joins."""

    def __init__(self, problem):
        self.problem = problem
        place, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
        for d, size in enumerate(problem.size):
            outputs, taps = np.arange(problem.output[d]), np.arange(problem.filter[d])
            at = outputs[:, None] * problem.stride[d] - problem.pads[d][0] + taps * problem.dilation[d]
            shape = (place.shape[0] * len(outputs), place.shape[1] * len(taps))
            place = (place[:, None, :, None] * size + at[None, :, None, :]).reshape(shape)
            inside = (inside[:, None, :, None] & ((at >= 0) & (at < size))[None, :, None, :]).reshape(shape)
        self.place, self.inside = place, inside

    def sums(self, a, b, finite):
        p = self.problem
        with_groups_first = lambda t: np.moveaxis(t.reshape(p.images, -1, *t.shape[-2:]), 2, 0)
        taps = lambda w: w.reshape(*w.shape[:2], -1, w.shape[-1])
        if p.op == "conv_fwd":
            total, or_nan = self._forward(with_groups_first(a), taps(b), finite)
            shape = (p.images, *p.output, p.groups, -1)
        elif p.op == "conv_bwd_data":
            total, or_nan = self._backward_data(with_groups_first(a), taps(b), finite)
            shape = (p.images, *p.size, p.groups, -1)
        else:
            total, or_nan = self._backward_weight(with_groups_first(a), with_groups_first(b), finite)
            return *(t.reshape(*t.shape[:2], *p.filter, -1) for t in (*total, or_nan)), self._depth()
        natural_order = lambda t: np.moveaxis(t, 0, 2).reshape(shape)
        return *(natural_order(t) for t in (*total, or_nan)), self._depth()

    def _depth(self):
        p = self.problem
        return {"conv_fwd": p.c // p.groups * self.place.shape[1], "conv_bwd_data": p.k // p.groups * self.place.shape[1],
                "conv_bwd_weight": p.images * self.place.shape[0]}[p.op]

    def _forward(self, x, w, finite):  # (g, n, pixels, c), (g, k, taps, c) -> (g, n, outputs, k)
        total = np.zeros((2, *x.shape[:2], self.place.shape[0], w.shape[1]))
        for t in range(self.place.shape[1]):
            rows = np.flatnonzero(self.inside[:, t])
            total[:, :, :, rows] += _both(x[:, :, self.place[rows, t]], w[:, None, :, t].swapaxes(-1, -2), finite)
        strange = ~np.isfinite(w).all(-1)                                   # (g, k, taps)
        or_nan = np.einsum("pt,gkt->gpk", ~self.inside, strange) if not finite else np.zeros(total[0, :, 0].shape, bool)
        return total, np.broadcast_to(or_nan[:, None], total.shape[1:])

    def _backward_data(self, dy, w, finite):  # (g, n, outputs, k), (g, k, taps, c) -> (g, n, pixels, c)
        pixels = math.prod(self.problem.size)
        total = np.zeros((2, *dy.shape[:2], pixels, w.shape[-1]))
        reached = np.zeros((pixels, self.place.shape[1]), bool)
        for t in range(self.place.shape[1]):
            rows = np.flatnonzero(self.inside[:, t])
            reached[self.place[rows, t], t] = True
            total[:, :, :, self.place[rows, t]] += _both(dy[:, :, rows], w[:, None, :, t], finite)
        strange = ~np.isfinite(w).all(1)                                    # (g, taps, c)
        or_nan = np.einsum("st,gtc->gsc", ~reached, strange) if not finite else np.zeros(total[0, :, 0].shape, bool)
        return total, np.broadcast_to(or_nan[:, None], total.shape[1:])

    def _backward_weight(self, dy, x, finite):  # -> (g, k, taps, c)
        flat = lambda t: t.reshape(t.shape[0], -1, t.shape[-1])
        total = np.zeros((2, dy.shape[0], dy.shape[-1], self.place.shape[1], x.shape[-1]))
        for t in range(self.place.shape[1]):
            rows = np.flatnonzero(self.inside[:, t])
            total[:, :, :, t] = _both(flat(dy[:, :, rows]).swapaxes(-1, -2), flat(x[:, :, self.place[rows, t]]), finite)
        strange = ~np.isfinite(dy).all(1)                                   # (g, outputs, k)
        or_nan = np.einsum("pt,gpk->gkt", ~self.inside, strange) if not finite else np.zeros(total.shape[1:4], bool)
        return total, np.broadcast_to(or_nan[..., None], total.shape[1:])


def beyond_outputs(problem, x):
    """Results of backward weight whose tap would meet a pixel that is no number where there is no output: kernels that walk on
    there multiply it by zero."""
    taps = _Taps(problem)
    reached = np.zeros((math.prod(problem.size), taps.place.shape[1]), bool)
    for t in range(taps.place.shape[1]):
        rows = np.flatnonzero(taps.inside[:, t])
        reached[taps.place[rows, t], t] = True
    strange = ~np.isfinite(x.reshape(problem.images, -1, *x.shape[-2:])).all(0)  # (pixels, g, c)
    met = np.einsum("st,sgc->gtc", ~reached, strange)
    return met.reshape(met.shape[0], 1, *problem.filter, met.shape[-1])


def wrapped(total):
    """Integer sums as int32 holds them."""
    return (total + 2.0**31) % 2.0**32 - 2.0**31


def _summed(problem, a, b, fp8_bits):
    """The sum of products as fp32 or int32 has it; where NaN is right as well, its order decides, or it is too large."""
    total, magnitude, or_nan, depth = sums(problem, a, b)
    if problem.dtype == "int8":
        return wrapped(total), np.zeros_like(total), or_nan, np.zeros_like(or_nan), np.zeros_like(or_nan)
    error = (UNIT * (depth + 8) + 2.1 * TF32_UNITS.get(problem.math, 0)) * magnitude + LEAST * (depth + 8)
    if problem.dtype in ("fp8", "bf8") and fp8_bits:
        error = error + 2.0**-fp8_bits * _cut_by_alignment(problem, a, b, depth, magnitude)
    if problem.dtype == "bf16" or problem.math in TF32_UNITS:  # denormals may count as zeros
        kept = sums(problem, *(np.where(np.abs(t) < NORMAL, 0, t) for t in (a, b)))[1]
        error = error + (magnitude - kept) + NORMAL * (depth + 8)
    beyond = np.isfinite(total) & (magnitude + error > LARGEST)
    infinite = beyond & (np.abs(total) == magnitude) & (magnitude - error > 2 * LARGEST)
    x = np.where(infinite, np.copysign(np.inf, total), total)
    if problem.math == "tf32x3":  # an infinity meets both halves of the other input
        or_nan = or_nan | np.isinf(x)
    return x, np.where(np.isfinite(x), error, 0), or_nan, beyond & ~infinite, infinite


def _cut_by_alignment(problem, a, b, depth, magnitude):
    """Last places that a matrix unit cuts from 8-bit products. It aligns those of an instruction with the one of the highest
    exponent and drops what lies below, once for each. A denormal, or zero, has the exponent of the smallest normal number."""
    raised = (np.maximum(np.abs(t), 2.0**FLOATS[kind][1])**PEAK_NORM for t, kind in ((a, problem.dtype), (b, problem.dtype_b)))
    with np.errstate(invalid="ignore"):
        peak = sums(problem, *raised)[0]**(1 / PEAK_NORM)
    instructions = -(-depth // FP8_PRODUCTS)
    carried = 4 * instructions * magnitude if problem.math == "fast" else 0  # the running sum is aligned as well
    return (depth + instructions) * peak + carried


def expected(problem, a, b, terms, alpha, beta, fp8_bits=0):
    """The result before it is rounded to its type. `terms` has c, bias, d0 and so on, scale_a and scale_b, decoded;
    `fp8_bits` are those of a matrix unit's sum of 8-bit products, where it is no fp32."""
    x, error, or_nan, anything, too_large = _summed(problem, a, b, fp8_bits)
    unit = DOUBLE_UNIT if problem.out == "int32" else UNIT
    if problem.dtype == "int8":
        error = _rounding(x, error, unit)
    factor = np.float64(alpha)
    if problem.scale == "row":
        factor = factor * terms["scale_a"][:, None] * terms["scale_b"]
    elif problem.scale == "tensor":
        factor = factor * terms["scale_a"][0] * terms["scale_b"][0]
    if np.any(factor != 1):  # whose own product is fp32 where it is one for all
        x, error = _times(x, error, factor, 4 * (UNIT if problem.scale == "tensor" else unit))
        anything = anything | (too_large & (np.abs(factor) < 1))  # a kernel may scale the weights before it adds up
    if beta != 0:
        x, error = _plus(x, error, beta * terms["c"], unit)
    taken = 0  # D tensors
    for operation in problem.epilogue:
        if operation == "bias":
            x, error = _plus(x, error, _along_channels(problem, terms["bias"]), unit)
        elif operation in ("add", "mul"):
            if operation == "mul":  # infinity times what may be zero
                anything |= (np.abs(x) <= error) & (error > 0) & np.isinf(terms[f"d{taken}"])
            x, error = (_plus if operation == "add" else _times)(x, error, terms[f"d{taken}"], unit)
            anything |= (np.abs(x) + error > LARGEST) & np.isfinite(x)
            taken += 1
        else:
            value, slope, size = activation(operation, x)
            own = 0 if size is None else FUNCTION_UNITS * UNIT * size
            x, error = value, np.where(np.isfinite(x), slope * error + own, 0)
    if problem.out == "bf16":  # a result that is a denormal may be zero
        error = np.where(np.abs(x) - error < NORMAL, np.maximum(error, NORMAL), error)
    return Expected(x, error + LEAST, or_nan, anything)


def _rounding(x, error, unit):
    """The bound after another rounding. What is exact and fits fp32 stays so, and infinity is infinity."""
    kept = ((error == 0) & (x.astype(np.float32) == x)) | ~np.isfinite(x)
    return np.where(kept, 0, error + unit * np.abs(x))


def _times(x, error, factor, unit):
    return x * factor, _rounding(x * factor, error * np.abs(factor), unit)


def _plus(x, error, term, unit):
    exact = np.asarray(term, np.float32) == term
    return x + term, _rounding(x + term, error + unit * np.where(exact, 0, np.abs(term)), unit)


def _along_channels(problem, bias):
    return bias.reshape(problem.groups, -1) if problem.is_conv else bias


def activation(name, x):
    """The value, the steepest slope anywhere, and what the function's own error is relative to (None: nothing)."""
    if name == "relu":
        return np.where(x < 0, 0, x), 1, None
    if name == "relu6":
        return np.where(x < 0, 0, np.where(x > 6, 6, x)), 1, None
    if name == "gelu":
        return 0.5 * x * ERFC(-x / math.sqrt(2)).astype(np.float64), 1.13, np.abs(x)
    if name == "gelu_tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), 1.13, np.abs(x)
    if name == "silu":
        return x / (1 + np.exp(-x)), 1.1, np.abs(x)
    if name == "sigmoid":
        return 1 / (1 + np.exp(-x)), 0.25, 1
    if name == "tanh":
        return np.tanh(x), 1, 1
    return x * np.clip(x + 3, 0, 6) / 6, 1.5, np.abs(x)  # hardswish
