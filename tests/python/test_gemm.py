# SPDX-License-Identifier: MIT
"""tilewise.gemm, prepare and bench on NumPy arrays, against products in float64."""
import concurrent.futures
import csv
import math
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tilewise

LAYOUTS = [a + b + c for a in "rc" for b in "rc" for c in "rc"]
M, N, K = 33, 45, 29
# Half a unit in the last place of each type, twice over.
EPSILON = {"float32": 2.0 ** -22, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float8_e4m3fn": 2.0 ** -3,
           "float8_e5m2": 2.0 ** -2}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def wide(x):
    return np.asarray(x).astype(np.float64)


def random(rng, shape, dtype=np.float32):
    if np.dtype(dtype) == np.int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.uniform(-1, 1, shape).astype(dtype)


def stored(letter, x):
    """x as the layout's letter stores it."""
    return np.ascontiguousarray(x if letter == "r" else np.swapaxes(x, -1, -2))


def written(letter, x):
    return x if letter == "r" else np.swapaxes(x, -1, -2)


def assert_close(have, want, scale=1.0):
    name = np.asarray(have).dtype.name
    if name.startswith("int"):
        np.testing.assert_array_equal(have, want)
    else:
        np.testing.assert_allclose(wide(have), want, rtol=EPSILON[name], atol=scale * max(EPSILON[name], 2e-6))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batch", [None, 3])
def test_every_layout(rng, layout, batch):
    lead = () if batch is None else (batch,)
    a, b = random(rng, (*lead, M, K)), random(rng, (*lead, K, N))
    c = tilewise.gemm(stored(layout[0], a), stored(layout[1], b), layout=layout)
    assert c.dtype == np.float32 and c.shape == lead + ((M, N) if layout[2] == "r" else (N, M))
    assert_close(written(layout[2], c), wide(a) @ wide(b))


@pytest.mark.parametrize("dtype, out", [
    (np.float32, None), (np.float32, "bf16"), (np.float16, None), (np.float16, np.float32),
    (ml_dtypes.bfloat16, None), (ml_dtypes.bfloat16, "float32"), (ml_dtypes.float8_e4m3fn, None),
    (ml_dtypes.float8_e5m2, np.dtype(ml_dtypes.bfloat16)), (np.int8, None), (np.int8, np.float32),
])
@pytest.mark.compiles
def test_types(rng, dtype, out):
    a, b = random(rng, (M, K), dtype), random(rng, (N, K), dtype)
    c = tilewise.gemm(a, b, out_dtype=out)
    usual = {"float8_e4m3fn": "float16", "float8_e5m2": "float16", "int8": "int32"}
    name = np.dtype(dtype).name
    if out is None:
        assert c.dtype.name == usual.get(name, name)
    assert_close(c, wide(a) @ wide(b).T, scale=K)


def test_two_kinds_of_8_bit_floats(rng):
    a, b = random(rng, (M, K), ml_dtypes.float8_e4m3fn), random(rng, (N, K), ml_dtypes.float8_e5m2)
    assert_close(tilewise.gemm(a, b), wide(a) @ wide(b).T, scale=K)


def test_out_is_written_and_returned(rng):
    a, b = random(rng, (M, K)), random(rng, (N, K))
    out = np.full((M, N), np.nan, np.float32)
    assert tilewise.gemm(a, b, out=out) is out
    assert_close(out, wide(a) @ wide(b).T)


def test_strided_operands(rng):
    a, b = random(rng, (M, K + 3))[:, :K], random(rng, (N * 2, K + 1))[::2, :K]
    frame = np.full((M + 2, N + 5), 7, np.float32)
    out = frame[1:-1, 2:-3]
    tilewise.gemm(a, b, out=out)
    assert_close(out, wide(a) @ wide(b).T)
    frame[1:-1, 2:-3] = 7
    assert (frame == 7).all(), "written outside of out"


def test_unaligned_operands(rng):
    raw = np.zeros(M * K * 4 + 16, np.uint8)
    for offset in (4, 8, 12):
        a = raw[offset:offset + M * K * 4].view(np.float32).reshape(M, K)
        a[:] = random(rng, (M, K))
        b = random(rng, (N, K))
        assert_close(tilewise.gemm(a, b), wide(a) @ wide(b).T)


def test_a_matrix_that_serves_the_batch(rng):
    a, b = random(rng, (4, M, K)), random(rng, (N, K))
    want = wide(a) @ wide(b).T
    for shared in (b, b[None], np.broadcast_to(b, (4, N, K))):
        assert_close(tilewise.gemm(a, shared), want)
    assert_close(tilewise.gemm(b, a), np.swapaxes(want, 1, 2))
    assert tilewise.gemm(a[:1], b).shape == (1, M, N)
    spread = random(rng, (4, 2, M, K))[:, 1]  # a batch with gaps
    assert_close(tilewise.gemm(spread, b), wide(spread) @ wide(b).T)


def test_alpha_and_beta(rng):
    a, b, c = random(rng, (M, K)), random(rng, (N, K)), random(rng, (M, N))
    for alpha, beta in ((2.0, 0.5), (0.0, 1.0), (-1, 0)):
        out = c.copy()
        tilewise.gemm(a, b, out=out, alpha=alpha, beta=beta)
        assert_close(out, alpha * (wide(a) @ wide(b).T) + beta * wide(c), scale=2)
    out = np.full((M, N), np.nan, np.float32)
    tilewise.gemm(a, b, out=out, beta=0.0)
    assert not np.isnan(out).any(), "beta = 0 never reads C"


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_bias_then_activation(rng, activation):
    a, b, bias = random(rng, (M, K)), random(rng, (N, K)), random(rng, (N,))
    want = wide(a) @ wide(b).T + wide(bias)
    have = tilewise.gemm(a, b, bias=bias, activation=activation)
    assert_close(have, ACTIVATIONS[activation](want) if activation else want, scale=10)


def test_d_tensors(rng):
    a, b = random(rng, (M, K)), random(rng, (N, K))
    d = [random(rng, (M, N)) for _ in range(3)]
    want = wide(a) @ wide(b).T
    assert_close(tilewise.gemm(a, b, d=d[0]), want + wide(d[0]))
    assert_close(tilewise.gemm(a, b, d=d[0], d_op="mul"), want * wide(d[0]))
    assert_close(tilewise.gemm(a, b, d=d[:2]), want + wide(d[0]) + wide(d[1]))
    mixed = (want + wide(d[0])) * wide(d[1]) + wide(d[2])
    assert_close(tilewise.gemm(a, b, d=d, d_op="add+mul+add"), mixed)
    assert_close(tilewise.gemm(a, b, d=tuple(d), d_op=["add", "mul", "add"]), mixed)


def test_d_tensors_where_they_stand(rng):
    a, b, bias = random(rng, (M, K)), random(rng, (N, K)), random(rng, (N,))
    d = [random(rng, (M, N)) for _ in range(3)]
    want = np.maximum(wide(a) @ wide(b).T + wide(bias) + wide(d[0]), 0)
    assert_close(tilewise.gemm(a, b, bias=bias, activation="add+relu", d=d[0]), want)
    have = tilewise.gemm(a, b, bias=bias, activation="add+relu", d=d, d_op="mul+add")
    assert_close(have, want * wide(d[1]) + wide(d[2]))
    with pytest.raises(ValueError, match="2 operations for 1 arrays"):
        tilewise.gemm(a, b, activation="add+relu", d=d[:2], d_op="add+mul")
    with pytest.raises(ValueError, match="needs it"):
        tilewise.gemm(a, b, activation="add+relu")


@pytest.mark.compiles
def test_scales(rng):
    a, b = random(rng, (M, K), ml_dtypes.float8_e4m3fn), random(rng, (N, K), ml_dtypes.float8_e4m3fn)
    product = wide(a) @ wide(b).T
    one, two = np.float32([0.5]), np.float32([3])
    rows, columns = random(rng, (M,)), random(rng, (N,))
    assert_close(tilewise.gemm(a, b, out_dtype="fp32", scale_a=one, scale_b=two), product * 1.5, scale=K)
    assert_close(tilewise.gemm(a, b, out_dtype="fp32", scale_a=rows, scale_b=columns),
                 product * wide(rows)[:, None] * wide(columns), scale=K)
    assert_close(tilewise.gemm(a, b, out_dtype="fp32", scale_a=0.5, scale_b=np.float32(3)), product * 1.5, scale=K)


@pytest.mark.compiles
def test_a_kernel_that_splits_k_gets_its_workspace(rng):
    m, n, k = 16, 16, 4096
    problem = f"gemm:m={m},n={n},k={k},dtype=fp32,layout=rcr"
    found = [kernel for kernel in tilewise.kernels(op="gemm", dtype="fp32", rule_set="full")
             if kernel.config.get("split_k", 1) > 1 and kernel.available]
    config = found[0].config if found else {**tilewise.kernels(op="gemm", dtype="fp32")[0].config, "split_k": 4}
    a, b = random(rng, (m, k)), random(rng, (n, k))
    want = wide(a) @ wide(b).T
    assert_close(tilewise.gemm(a, b, kernel=config), want, scale=K)
    prepared = tilewise.prepare(problem, kernel=config)
    assert prepared.workspace_bytes > 0
    for _ in range(2):
        assert_close(prepared(a, b), want, scale=K)
    mine = np.zeros(prepared.workspace_bytes, np.uint8)
    assert_close(tilewise.gemm(a, b, kernel=config, workspace=mine), want, scale=K)
    assert mine.any()
    with pytest.raises(ValueError, match="workspace: .* bytes, but the kernel needs"):
        tilewise.gemm(a, b, kernel=config, workspace=mine[:-16])
    with pytest.raises(ValueError, match="workspace: it has gaps"):
        tilewise.gemm(a, b, kernel=config, workspace=np.repeat(mine, 2)[::2])
    with pytest.raises(TypeError, match="workspace: expected"):
        tilewise.gemm(a, b, kernel=config, workspace=bytearray(10))


def padded(rng, shape, dtype):
    """Random values with gaps between the rows, and between the matrices of a batch."""
    gaps = [int(gap) for gap in rng.integers(0, 4, 2)]
    whole = random(rng, (*shape[:-2], shape[-2] + gaps[0], shape[-1] + gaps[1]), dtype)
    return whole[..., :shape[-2], :shape[-1]]


@pytest.mark.parametrize("seed", range(60))
def test_random_products(seed):
    """Everything a call can have, in any mix."""
    rng = np.random.default_rng(seed)
    m, n, k = (int(size) for size in rng.integers(1, 70, 3))
    dtype = [np.float32, ml_dtypes.bfloat16][seed % 2]
    layout = LAYOUTS[seed % 8]
    batch = (int(rng.integers(1, 4)),) if rng.random() < 0.3 else ()
    shapes = [(x, y) if letter == "r" else (y, x) for letter, x, y in zip(layout, (m, k, m), (k, n, n))]
    a = padded(rng, batch + shapes[0], dtype)
    b = padded(rng, (batch if rng.random() < 0.5 else ()) + shapes[1], dtype)
    want = wide(written(layout[0], a)) @ wide(written(layout[1], b))
    options = {"alpha": float(rng.uniform(-2, 2))}
    want = options["alpha"] * want
    if rng.random() < 0.5:
        out = padded(rng, batch + shapes[2], dtype)
        options.update(out=out, beta=float(rng.choice([0, 0.5, -1])))
        want = want + options["beta"] * wide(written(layout[2], out))
    if rng.random() < 0.5:
        options["bias"] = random(rng, (n,), dtype)
        want = want + wide(options["bias"])
    if rng.random() < 0.5:
        options["activation"] = str(rng.choice(list(ACTIVATIONS)))
        want = ACTIVATIONS[options["activation"]](want)
    if rng.random() < 0.3:
        like = options.get("out", np.empty(batch + shapes[2], dtype))
        d = np.lib.stride_tricks.as_strided(np.empty(like.nbytes * 4, np.uint8).view(dtype), like.shape, like.strides)
        d[...] = random(rng, like.shape, dtype)
        options.update(d=d, d_op="mul")
        want = want * wide(written(layout[2], d))
    have = tilewise.gemm(a, b, layout=layout, strategy="first-fit", **options)  # one kernel to build for each type
    assert_close(written(layout[2], have), want, scale=1 + math.sqrt(k))


def test_torch_is_not_imported_for_others():
    code = ("import sys, numpy as np, tilewise; tilewise.gemm(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32));"
            "assert not {'torch', 'ml_dtypes', 'jax'} & set(sys.modules)")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


# ---- wrong inputs ----------------------------------------------------------------------------------------------------

A, B = np.ones((4, 8), np.float32), np.ones((6, 8), np.float32)
BIG_ENDIAN = A.astype(">f4")


@pytest.mark.parametrize("arguments, options, error, message", [
    (([[1.0]], B), {}, TypeError, "a: expected a NumPy array, a torch tensor or .* got list"),
    ((A, None), {}, TypeError, "b: expected .* got NoneType"),
    ((A.astype(np.float64), B), {}, TypeError, "a: dtype .*float64.* is not supported; use one of float32"),
    ((A.astype(np.complex64), B), {}, TypeError, "not supported"),
    ((BIG_ENDIAN, B), {}, TypeError, "order of another machine"),
    ((np.ma.masked_array(A, A > 2), B), {}, TypeError, "masked"),
    ((A[0], B), {}, ValueError, "a: 1 dimensions"),
    ((A[None, None], B), {}, ValueError, "a: 4 dimensions"),
    ((A, np.ascontiguousarray(B.T)), {}, ValueError, "a has k=8, b has k=6; b as it is stored fits layout 'rrr'"),
    ((A, B[:, :5]), {}, ValueError, "k=8, b has k=5$"),
    ((A, np.ascontiguousarray(B.T).T), {}, ValueError, "b: its last dimension has stride 6, need 1; .*transposed view"),
    ((A[:, ::2], B[:, ::2]), {}, ValueError, "a: its last dimension has stride 2, need 1; make it contiguous"),
    ((A[::-1], B), {}, ValueError, "overlap or run backwards"),
    ((np.broadcast_to(A[:1], (4, 8)), B), {}, ValueError, "overlap or run backwards"),
    ((np.ones((2, 4, 8), np.float32), np.ones((3, 6, 8), np.float32)), {}, ValueError, "batch of 2, b of 3"),
    ((A, B), {"layout": "xyz"}, ValueError, "layout: 'xyz'; need three letters"),
    ((A, B), {"layout": "rc"}, ValueError, "layout"),
    ((A, B), {"out": np.ones((4, 5), np.float32)}, ValueError, r"out: shape \(4, 5\), need \(4, 6\)"),
    ((A, B), {"out": np.ones((4, 6), np.float32), "out_dtype": "fp16"}, TypeError, "out_dtype: fp16, but out is of fp32"),
    ((A, B), {"out": np.broadcast_to(np.float32(0), (4, 6))}, ValueError, "out: it is read-only"),
    ((A, B), {"out_dtype": "float64"}, TypeError, "float64"),
    ((A, B), {"beta": 1.0}, ValueError, "out must be given"),
    ((A, B), {"bias": np.ones(5, np.float32)}, ValueError, r"bias: shape \(5,\), need \(6,\)"),
    ((A, B), {"bias": np.ones(6, np.float16)}, TypeError, "bias: it is of fp16, the problem needs fp32"),
    ((A, B), {"bias": np.ones(12, np.float32)[::2]}, ValueError, "bias: its values are 2 apart"),
    ((A, B), {"d": np.ones((6, 4), np.float32)}, ValueError, r"d\[0\]: shape"),
    ((A, B), {"d": np.ones((4, 7), np.float32)[:, :6]}, ValueError, r"d\[0\]: its strides are \(7, 1\)"),
    ((A, B), {"d": [np.ones((4, 6), np.float32)] * 5}, ValueError, "at most 4"),
    ((A, B), {"d": [np.ones((4, 6), np.float32)] * 3, "d_op": "add+mul"}, ValueError, "2 operations for 3 arrays"),
    ((A, B), {"scale_a": np.ones(1, np.float32)}, ValueError, "an array for both"),
    ((A, B), {"scale_a": np.ones(3, np.float32), "scale_b": np.ones(6, np.float32)}, ValueError, "scale_a: shape"),
    ((A, B), {"scale_a": np.ones(1), "scale_b": np.ones(1)}, TypeError, "scale_a"),
    ((A, B), {"kernel": 7}, TypeError, "kernel: expected"),
    ((A, B), {"stream": "x"}, TypeError, "stream: expected an integer handle"),
    ((A, B), {"stream": 1}, ValueError, "stream: cpu has no streams, .* leave stream= out"),
    ((A, B), {"workspace": "x"}, TypeError, "workspace: expected"),  # also where the kernel needs none
    ((A, B), {"workspace": np.zeros(32, np.uint8)[::2]}, ValueError, "workspace: it has gaps"),
])
def test_wrong_inputs(arguments, options, error, message):
    with pytest.raises(error, match=message):
        tilewise.gemm(*arguments, **options)


def test_streams_and_workspaces_of_prepared_problems():
    prepared = tilewise.prepare("gemm:m=4,n=6,k=8,dtype=fp32,layout=rcr,packed_b=1")
    packed = prepared.pack_b(B)
    for call in (lambda: prepared(A, packed, stream=0), lambda: prepared.pack_b(B, stream=0)):
        with pytest.raises(ValueError, match="stream: cpu has no streams"):
            call()
    with pytest.raises(TypeError, match="workspace: expected"):
        prepared(A, packed, workspace=[0])
    assert_close(prepared(A, packed, workspace=np.empty(prepared.workspace_bytes, np.uint8)), A @ B.T, scale=8)


@pytest.mark.parametrize("options, code", [
    ({"activation": "relu7"}, 2), ({"math": "sloppy"}, 2), ({"d": np.ones((4, 6), np.float32), "d_op": "sub"}, 2),
    ({"kernel": "nonsense"}, 2), ({"strategy": "nonsense"}, 2), ({"out_dtype": "int8"}, 3),
])
def test_errors_of_the_library_carry_its_code(options, code):
    with pytest.raises(tilewise.Error) as caught:
        tilewise.gemm(A, B, **options)
    assert caught.value.code == code and str(caught.value)


@pytest.mark.parametrize("a, b, shape", [
    (A[:0], B, (0, len(B))), (np.zeros((0, A.shape[1]), np.float32), B, (0, len(B))), (A, B[:0], (len(A), 0)),
    (A[:0], B[:0], (0, 0)), (np.zeros((0, 4, 8), np.float32), np.zeros((6, 8), np.float32), (0, 4, 6)),
], ids=["slice", "array", "columns", "both", "batch"])
def test_an_empty_result_is_empty(a, b, shape):
    assert tilewise.gemm(a, b).shape == shape
    out = np.ones(shape, np.float32)
    assert tilewise.gemm(a, b, out=out, beta=1, strategy="measure") is out


@pytest.mark.parametrize("layout", ["rcr", "rrr", "crr", "rcc"])
def test_sums_without_terms(layout):
    """The result is the epilogue of zeros: beta and bias count."""
    a = np.zeros((4, 0) if layout[0] == "r" else (0, 4), np.float32)
    b = np.zeros((0, 6) if layout[1] == "r" else (6, 0), np.float32)
    shape = (4, 6) if layout[2] == "r" else (6, 4)
    np.testing.assert_array_equal(tilewise.gemm(a, b, layout=layout), np.zeros(shape, np.float32))
    out = np.arange(24, dtype=np.float32).reshape(shape)
    want = out / 2
    np.testing.assert_array_equal(tilewise.gemm(a, b, layout=layout, out=out, beta=0.5), want)
    bias = np.arange(6, dtype=np.float32)
    have = tilewise.gemm(a, b, layout=layout, bias=bias, activation="relu")
    np.testing.assert_array_equal(have, np.broadcast_to(bias, (4, 6)) if layout[2] == "r" else
                                  np.broadcast_to(bias[:, None], (6, 4)))


def test_sums_without_terms_in_a_batch_with_gaps():
    out = np.full((3, 5, 16), 7, np.float32)[:, :, :9]
    have = tilewise.gemm(np.zeros((3, 5, 0), np.float32), np.zeros((9, 0), np.float32), out=out, beta=2)
    assert have is out and (out == 14).all() and (out.base[:, :, 9:] == 7).all()


# ---- prepare and bench -----------------------------------------------------------------------------------------------


def test_prepared_runs_and_says_what_it_is(rng):
    prepared = tilewise.prepare(f"gemm:m={M},n={N},k={K},dtype=fp32,layout=rcr,epilogue=bias+relu,d=mul,beta=1")
    assert prepared.kernel == prepared.plan.kernel and prepared.plan.source and prepared.plan.why
    assert prepared.workspace_bytes == 0 and prepared.kernel in repr(prepared)
    assert list(prepared.operands) == ["a", "b", "c", "bias", "d0"]
    assert prepared.operands["c"].shape == (M, N) and prepared.operands["b"].strides == (K, 1)
    a, b, c, bias, d = (random(rng, shape) for shape in ((M, K), (N, K), (M, N), (N,), (M, N)))
    want = np.maximum(2 * wide(a) @ wide(b).T + 0.5 * wide(c) + wide(bias), 0) * wide(d)
    for _ in range(2):
        out = c.copy()
        assert prepared(a, b, out=out, bias=bias, d=d, alpha=2, beta=0.5) is out
        assert_close(out, want, scale=4)
    assert prepared(a, b, bias=bias, d=d).shape == (M, N)


@pytest.mark.parametrize("options, error, message", [
    ({"a": np.ones((4, 9), np.float32)}, ValueError, r"a: its shape is \(4, 9\), the problem needs \(4, 8\)"),
    ({"a": np.ones((4, 8), np.float16)}, TypeError, "a: it is of fp16"),
    ({"a": np.ones((4, 9), np.float32)[:, :8]}, ValueError, r"a: its strides are \(9, 1\)"),
    ({"bias": np.ones(6, np.float32)}, ValueError, "bias: the problem .* has none"),
    ({"d": None}, ValueError, "d0: the problem .* needs it"),
    ({"out": np.ones((4, 6), np.float32), "beta": 1.0}, ValueError, "beta: .* add beta=1"),
    ({"a": np.ones(4 * 8 + 1, np.float32)[1:].reshape(4, 8)}, ValueError, "not a multiple of 16 bytes"),
])
def test_prepared_checks_its_operands(options, error, message):
    prepared = tilewise.prepare("gemm:m=4,n=6,k=8,dtype=fp32,layout=rcr,d=add")
    with pytest.raises(error, match=message):
        prepared(**{"a": A, "b": B, "d": np.ones((4, 6), np.float32), **options})


def test_b_packed_ahead(rng):
    prepared = tilewise.prepare("gemm:m=40,n=48,k=64,dtype=fp32,layout=rcr,packed_b=1")
    a, b = random(rng, (40, 64)), random(rng, (48, 64))
    packed = prepared.pack_b(b)
    assert packed.nbytes == prepared.packed_b_bytes > 0
    assert_close(prepared(a, packed), wide(a) @ wide(b).T)
    assert_close(prepared(a, prepared.pack_b(b, np.zeros(packed.nbytes + 8, np.uint8))), wide(a) @ wide(b).T)
    with pytest.raises(ValueError, match="use pack_b"):
        prepared(a, packed[:-1])
    with pytest.raises(ValueError, match="add packed_b=1"):
        tilewise.prepare("gemm:m=40,n=48,k=64,dtype=fp32").pack_b(b)


def test_prepare_errors():
    for problem, device, error in (("nonsense", "cpu", tilewise.UsageError),
                                   ("gemm:m=4,n=4,k=4,dtype=fp32", "abacus", tilewise.DeviceError)):
        with pytest.raises(error):
            tilewise.prepare(problem, device=device)
    with pytest.raises(TypeError, match="problem: expected"):
        tilewise.prepare(42)
    with pytest.raises(TypeError, match="problem: expected"):
        tilewise.bench(42)


def test_measure_then_remember(rng, tmp_path):
    """A measured choice is made once; the plan says so. Another process remembers it."""
    code = ("import tilewise; p = lambda: tilewise.prepare('gemm:m=24,n=24,k=24,dtype=fp32', strategy='measure', top=2);"
            "first, again = p(), p(); assert first.plan == again.plan;"
            "print(first.plan.source, any(note['kind'] == 'noise' for note in first.plan.notes))")
    environment = {**os.environ, "TILEWISE_CACHE_DIR": os.fspath(tmp_path)}
    run = lambda: subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    result = run()
    source, noisy = result.stdout.split()
    assert source == "measured", result.stderr
    with open(tmp_path / "records.csv", newline="", encoding="utf-8") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["ok", "ok"], "both that were measured are recorded"
    assert noisy == "True" or run().stdout.split()[0] == "tuned"


def test_bench_measures_what_it_is_asked_for():
    problem = "gemm:m=32,n=32,k=32,dtype=fp32,layout=rcr"
    one = tilewise.bench(problem)
    assert len(one.results) == 1 and one.device and not one.failures and not one.notes
    row = one.results[0]
    assert row.problem == problem and row.us > 0 and row.roof > 0
    assert row.tflops == pytest.approx(2 * 32 ** 3 / row.us / 1e6)
    assert tilewise.bench(problem, kernel=row.kernel).results[0].kernel == row.kernel


# ---- threads, forks, other libraries ---------------------------------------------------------------------------------


def test_threads_do_not_mix_their_operands():
    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            m = int(rng.choice([8, M]))
            a, b = random(rng, (m, K)), random(rng, (N, K))
            bias = random(rng, (N,))
            assert_close(tilewise.gemm(a, b, bias=bias, alpha=seed), seed * (wide(a) @ wide(b).T) + wide(bias), scale=16)
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(1, 9)))


def test_a_forked_child_opens_its_own_context(rng):
    from tilewise import _runtime
    a, b = random(rng, (M, K)), random(rng, (N, K))
    want = tilewise.gemm(a, b)
    prepared = tilewise.prepare(f"gemm:m={M},n={N},k={K},dtype=fp32")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            fresh = not _runtime._contexts
            same = np.array_equal(tilewise.gemm(a, b), want) and np.array_equal(prepared(a, b), want)
            status = 0 if fresh and same and _runtime._contexts else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(tilewise.gemm(a, b), want)


class Exported:
    """An array of a library that is known by __dlpack__ alone."""

    def __init__(self, array, versioned):
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versioned and options:
            raise TypeError("of an older standard")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack(rng, versioned):
    a, b = random(rng, (M, K)), random(rng, (N, K + 2))[:, :K]
    out = np.empty((M, N), np.float32)
    wrapped = Exported(out, versioned)
    assert tilewise.gemm(Exported(a, versioned), Exported(b, versioned), out=wrapped) is wrapped
    assert_close(out, wide(a) @ wide(b).T)
    with pytest.raises(ValueError, match="give out="):
        tilewise.gemm(Exported(a, versioned), b)
    with pytest.raises(TypeError, match="float64 is not supported"):
        tilewise.gemm(Exported(a.astype(np.float64), versioned), b, out=out)


def test_a_repeated_call_is_quick(rng):
    """Generous, for a loaded machine; the figure itself is in docs/python.md."""
    import time
    a, b, out = random(rng, (2, 2)), random(rng, (2, 2)), np.empty((2, 2), np.float32)
    best = math.inf
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(100):
            tilewise.gemm(a, b, out=out)
        best = min(best, (time.perf_counter() - start) / 100)
    assert best < 100e-6


@pytest.mark.parametrize("n", [1, 130])
def test_integer_sums_wrap_around(n):
    """The sum is exact modulo 2^32, also between blocks of k, in every built-in kernel."""
    m, k = 5, 280_000
    a, b = np.full((m, k), 127, np.int8), np.full((n, k), -128, np.int8)
    a[:, ::7], b[:, 1::11] = -128, 127
    exact = a.astype(np.int64) @ b.T.astype(np.int64)
    want = exact.astype(np.int32)  # modulo 2^32
    assert (exact != want).any()
    problem = f"gemm:m={m},n={n},k={k},dtype=int8,layout=rcr"
    kernels = [c.name for c in tilewise.select(problem, rule_set="builtin").candidates]
    assert kernels
    for name in kernels:
        np.testing.assert_array_equal(tilewise.gemm(a, b, kernel=name), want, err_msg=name)


def test_an_integer_sum_with_an_old_c_saturates():
    k = 140_000
    a, b = np.full((3, k), 127, np.int8), np.full((40, k), 127, np.int8)
    total = k * 127 * 127 - 2 ** 32  # of the products, as an int32
    c = np.full((3, 40), -1_500_000_000, np.int32)
    problem = f"gemm:m=3,n=40,k={k},dtype=int8,layout=rcr,beta=1"
    for candidate in tilewise.select(problem, rule_set="builtin").candidates:
        have = tilewise.gemm(a, b, out=c.copy(), beta=1.0, kernel=candidate.name)
        np.testing.assert_array_equal(have, max(total - 1_500_000_000, -2 ** 31), err_msg=candidate.name)


@pytest.mark.parametrize("activation, want", [
    ("relu", (0.0, math.inf)), ("relu6", (0.0, 6.0)), ("sigmoid", (0.0, 1.0)), ("tanh", (-1.0, 1.0)),
    ("gelu", (math.nan, math.inf)), ("gelu_tanh", (math.nan, math.inf)), ("silu", (math.nan, math.inf)),
    ("hardswish", (math.nan, math.inf))])
def test_activations_of_infinities_and_nan(activation, want):
    """As docs/problems.md says; the largest finite values stay finite."""
    largest = float(np.finfo(np.float32).max)
    a = np.array([[-math.inf], [math.inf], [math.nan], [-largest], [largest]], np.float32)
    got = tilewise.gemm(a, np.ones((1, 1), np.float32), activation=activation)[:, 0]
    bounded = {"relu6": 6.0, "sigmoid": 1.0, "tanh": 1.0}
    np.testing.assert_array_equal(got, [*want, math.nan, want[0] if activation in ("relu", "relu6", "sigmoid", "tanh")
                                        else 0.0, bounded.get(activation, largest)])
