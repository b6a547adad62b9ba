# SPDX-License-Identifier: MIT
"""The judge is judged: formats against ml_dtypes, sums against plain loops, and faults that must be seen."""
import itertools
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import cases
import formats
import judge
import reference
import values
from memory import SLOT_BYTES
from problem import Problem

NATIVE = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "fp16": np.float16}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("dtype", NATIVE)
def test_every_value_of_a_format(dtype):
    width = formats.BYTES[dtype]
    bits = np.arange(1 << 8 * width, dtype=formats.STORED[width])
    values = formats.decode(dtype, bits)
    np.testing.assert_array_equal(values, bits.view(NATIVE[dtype]).astype(np.float64))
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(formats.encode(dtype, values)[numbers], bits[numbers])


@pytest.mark.parametrize("dtype", NATIVE)
def test_rounding_to_a_format(dtype):
    rng = np.random.default_rng(1)
    # Of 32 bits, which ml_dtypes rounds once, as the largest numbers of an 8-bit float saturate.
    values = np.ldexp(rng.standard_normal(20000), rng.integers(-30, 8, 20000)).astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(formats.nearest(dtype, values), values.astype(np.float32).astype(NATIVE[dtype]))
    halves = (formats.decode(dtype, np.arange(20, 50)) + formats.decode(dtype, np.arange(21, 51))) / 2
    even = formats.encode(dtype, halves)
    assert not (even & 1).any()


def test_saturation():
    np.testing.assert_array_equal(formats.nearest("fp8", np.array([1e9, -1e9, np.inf])), [448, -448, 448])
    np.testing.assert_array_equal(formats.nearest("bf8", np.array([1e9, -np.inf, np.inf])), [57344, -57344, 57344])
    np.testing.assert_array_equal(formats.nearest("fp16", np.array([65519.0, 65520.0])), [65504, np.inf])
    np.testing.assert_array_equal(formats.nearest("int8", np.array([-300, 300, 2.5, np.nan])), [-128, 127, 2, 0])


def test_what_may_be_zero_times_infinity():
    problem = Problem("gemm:m=1,n=2,k=1,dtype=bf16,layout=rcr,epilogue=gelu,d=mul")
    a, b = np.ones((1, 1, 1)), np.array([[[-14.0, 2.0]]])
    wanted = reference.expected(problem, a, b, {"d0": np.full((1, 1, 2), -np.inf)}, 1.0, 0.0)
    # gelu(-14) is -5e-44, which fp32 may round to zero.
    assert wanted.anything.ravel().tolist() == [True, False]
    assert wanted.value.ravel()[1] == -np.inf


def test_pixels_beyond_the_outputs():
    problem = Problem("conv_bwd_weight:n=1,g=1,c=1,k=1,in=4,filter=3,stride=1,pad=1,dtype=fp32,layout=nwgc")
    x = np.zeros((1, 4, 1, 1))
    x[0, 0] = np.inf  # the last tap would meet it at output -1
    assert reference.beyond_outputs(problem, x).ravel().tolist() == [False, False, True]
    assert not reference.beyond_outputs(problem, np.roll(x, 1, 1)).any()


def _slow_convolution(problem, a, b):
    """The same sums one product at a time, straight from the definition."""
    groups, c, k = problem.groups, problem.c // problem.groups, problem.k // problem.groups
    x, w = (a, b) if problem.op == "conv_fwd" else (None, b) if problem.op == "conv_bwd_data" else (b, None)
    shape = {"conv_fwd": (problem.images, *problem.output, groups, k), "conv_bwd_data": (problem.images, *problem.size, groups, c),
             "conv_bwd_weight": (groups, k, *problem.filter, c)}[problem.op]
    total = np.zeros(shape)
    for out in itertools.product(*map(range, problem.output)):
        for tap in itertools.product(*map(range, problem.filter)):
            at = tuple(o * s - pad[0] + t * d for o, s, pad, t, d
                       in zip(out, problem.stride, problem.pads, tap, problem.dilation))
            if not all(0 <= i < size for i, size in zip(at, problem.size)):
                continue
            for n, g, i, j in itertools.product(range(problem.images), range(groups), range(c), range(k)):
                if problem.op == "conv_fwd":
                    total[(n, *out, g, j)] += x[(n, *at, g, i)] * w[(g, j, *tap, i)]
                elif problem.op == "conv_bwd_data":
                    total[(n, *at, g, i)] += a[(n, *out, g, j)] * w[(g, j, *tap, i)]
                else:
                    total[(g, j, *tap, i)] += a[(n, *out, g, j)] * x[(n, *at, g, i)]
    return total


@pytest.mark.parametrize("op", ("conv_fwd", "conv_bwd_data", "conv_bwd_weight"))
@pytest.mark.parametrize("shape", ("n=2,g=2,c=4,k=6,in=5,filter=3,stride=2,dilation=2,pad=1:3",
                                   "n=1,g=1,c=2,k=3,in=4x3,filter=2x3,stride=2x1,pad=0:1x4:2",
                                   "n=1,g=2,c=2,k=2,in=2x1x3,filter=2x1x2,stride=1x3x1,dilation=1x2x2,pad=1x0x1:2"))
def test_convolution_by_taps(op, shape):
    problem = Problem(f"{op}:{shape},dtype=fp32")
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(problem.operands()[name].shape) for name in "ab")
    total, magnitude, _, _ = reference.sums(problem, a, b)
    np.testing.assert_allclose(total, _slow_convolution(problem, a, b), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(magnitude, _slow_convolution(problem, abs(a), abs(b)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ("fp32", "fp16", "bf16", "fp8", "bf8"))
def test_one_product_left_out_is_seen(dtype):
    problem = Problem(f"gemm:m=8,n=8,k=40,dtype={dtype},layout=rrr,out=fp32")
    rng = np.random.default_rng(3)
    a, b = (formats.decode(dtype, formats.encode(dtype, rng.uniform(0.5, 2, (1, *shape)))) for shape in ((8, 40), (40, 8)))
    wanted = reference.expected(problem, a, b, {}, 1.0, 0.0)
    exact = (a @ b).astype(np.float32).astype(np.float64)
    assert not judge.wrong("fp32", wanted, exact).any()
    assert judge.wrong("fp32", wanted, exact - a[:, :, :1] * b[:, :1]).all()
    assert judge.wrong("fp32", wanted, np.full_like(exact, np.nan)).all()


def _aligned_sum(a, b, dtypes, bits):
    """The sum of a matrix unit for products that it aligns with the highest exponent and cuts there."""
    exponents = sum(np.maximum(np.frexp(t)[1] - 1, formats.FLOATS[kind][1]) for t, kind in zip((a, b), dtypes))
    step = np.ldexp(1.0, exponents.max(-1, keepdims=True) - bits)
    return (np.trunc(a * b / step) * step).sum(-1)


@pytest.mark.parametrize("style", ("normal", "wide", "tiny"))
def test_products_cut_by_a_matrix_unit_are_right(style):
    problem = Problem("gemm:m=256,n=256,k=9,dtype=bf8,b=fp8,layout=rcr,out=fp32")
    rng = np.random.default_rng(4)
    a, b = (formats.decode(kind, values.fill(rng, style, kind, (256, 9))) for kind in ("bf8", "fp8"))
    got = _aligned_sum(a[:, None], b[None], ("bf8", "fp8"), 13)
    wanted = reference.expected(problem, a[None], b.T[None], {}, 1.0, 0.0, 13)
    assert not judge.wrong("fp32", wanted, got[None]).any()
    assert judge.wrong("fp32", reference.expected(problem, a[None], b.T[None], {}, 1.0, 0.0), got[None]).any()


def test_padding_that_meets_infinity_may_be_left_out():
    problem = Problem("conv_fwd:n=1,g=1,c=1,k=1,in=3,filter=3,pad=1,dtype=fp32")
    x, w = np.ones((1, 3, 1, 1)), np.array([np.inf, 1.0, 1.0]).reshape(1, 1, 3, 1)
    wanted = reference.expected(problem, x, w, {}, 1.0, 0.0)
    right = np.array([2, np.inf, np.inf]).reshape(1, 3, 1, 1)
    assert not judge.wrong("fp32", wanted, right).any()
    assert not judge.wrong("fp32", wanted, np.where(right == 2, np.nan, right)).any()
    assert judge.wrong("fp32", wanted, np.full_like(right, np.nan)).sum() == 2
    assert judge.wrong("fp32", wanted, np.full_like(right, np.inf)).sum() == 1


def test_scaling_may_come_before_sums_that_are_too_large():
    problem = Problem("gemm:m=1,n=1,k=4,dtype=bf16,layout=rrr,out=fp32")
    a, b = np.full((1, 1, 4), 2.0**70), np.full((1, 4, 1), 2.0**70)
    for alpha, right in ((0.0, 0.0), (0.0, np.nan), (2.0**-40, 2.0**102), (2.0**-40, np.inf), (1.0, np.inf)):
        wanted = reference.expected(problem, a, b, {}, alpha, 0.0)
        assert not judge.wrong("fp32", wanted, np.full((1, 1, 1), right)).any(), (alpha, right)
    assert judge.wrong("fp32", reference.expected(problem, a, b, {}, 1.0, 0.0), np.zeros((1, 1, 1))).all()


def test_int8_sums_wrap():
    np.testing.assert_array_equal(reference.wrapped(np.array([2.0**31, -2.0**31 - 1, 5.0])), [-2.0**31, 2.0**31 - 1, 5])


@pytest.mark.parametrize("offset", (-1, SLOT_BYTES))
def test_a_guard_page_ends_the_process(offset):
    code = ("import ctypes, memory; base, _ = memory.HostMemory()._slot('a'); "
            f"ctypes.string_at(base + {offset}, 1)")
    done = subprocess.run([sys.executable, "-c", code], cwd=cases.__file__.rsplit("/", 1)[0], check=False)
    assert done.returncode < 0


def test_cases_repeat_and_cover():
    made = [cases.make(1, i, [], True) for i in range(3000)]
    assert made == [cases.make(1, i, [], True) for i in range(3000)]
    problems = [Problem(case.problem) for case in made]
    impossible = [p for p in problems if p.impossible()]
    assert 50 < len(impossible) < 300
    assert {p.op for p in problems} == set(cases.OPS)
    assert {p.layout for p in problems} >= set(cases.LAYOUTS)
    assert {p.dtype for p in problems} == set(cases.DTYPES)
    for key in ("m", "n", "k", "batch"):
        assert sum(p.fields.get(key) == "1" for p in problems if p.op == "gemm") > 50
