# SPDX-License-Identifier: MIT
"""The first things that newcomers try from Python."""
import numpy as np
import pytest

import tilewise

A, B = np.ones((4, 8), np.float32), np.ones((6, 8), np.float32)


def test_an_unknown_kernel():
    with pytest.raises(tilewise.UsageError, match="'nope'.*@arch.*tilewise kernels"):
        tilewise.gemm(A, B, kernel="nope")


def test_a_kernel_by_its_id():
    kernel = tilewise.kernels("gemm", dtype="fp32", rule_set="builtin")[0]
    assert tilewise.check(kernel.id).valid
    np.testing.assert_array_equal(tilewise.gemm(A, B, kernel=kernel.id), A @ B.T)
    assert tilewise.prepare("gemm:m=4,n=6,k=8,dtype=fp32", kernel=kernel.id).kernel == kernel.name


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), "torch.float32"])
def test_types_of_other_libraries(dtype):
    assert tilewise.Problem("gemm", m=4, n=4, k=4, dtype=dtype).dtype == "fp32"
    assert tilewise.kernels("gemm", dtype=dtype, rule_set="tiny") == tilewise.kernels("gemm", dtype="fp32", rule_set="tiny")


def test_types_of_torch():
    torch = pytest.importorskip("torch")
    assert tilewise.Problem("gemm", m=4, n=4, k=4, dtype=torch.bfloat16, out=torch.float32).text == \
        tilewise.Problem("gemm:m=4,n=4,k=4,dtype=bf16,out=fp32").text
    assert tilewise.gemm(torch.zeros(4, 0), torch.zeros(6, 0)).shape == (4, 6)
    assert tilewise.gemm(torch.zeros(0, 8), torch.zeros(6, 8)).shape == (0, 6)


def test_what_is_no_type_is_said():
    with pytest.raises(TypeError, match="dtype"):
        tilewise.Problem("gemm", m=4, n=4, k=4, dtype=object())


X, W = np.ones((1, 8, 8, 1, 4), np.float32), np.ones((1, 4, 3, 3, 4), np.float32)
P = "gemm:m=4,n=6,k=8,dtype=fp32"


@pytest.mark.parametrize("name, value, error", [
    ("alpha", "2", TypeError), ("alpha", None, TypeError), ("alpha", 1j, TypeError), ("alpha", 10**400, ValueError),
    ("beta", None, TypeError), ("beta", np.ones(2), TypeError), ("strategy", 3, TypeError), ("strategy", ["measure"], TypeError),
    ("activation", ["relu"], TypeError), ("math", ["strict"], TypeError), ("d_op", None, TypeError), ("kernel", 3, TypeError),
    ("out_dtype", ["float32"], TypeError), ("layout", ["r", "c", "r"], ValueError), ("stride", 1.5, TypeError)])
def test_an_argument_of_the_wrong_kind_is_named(name, value, error):
    arguments = {"out": np.zeros((4, 6), np.float32), "d": np.zeros((4, 6), np.float32), name: value}
    if name != "stride":
        with pytest.raises(error, match=name.removeprefix("out_")):
            tilewise.gemm(A, B, **arguments)
    if name != "layout":
        image = np.zeros((1, 6, 6, 1, 4), np.float32)
        with pytest.raises(error, match=name.removeprefix("out_")):
            tilewise.conv_forward(X, W, **{**arguments, "out": image, "d": image, name: value})


@pytest.mark.parametrize("call, message", [
    (lambda: tilewise.prepare(P, top="x"), "top: 'x' is not a whole number"),
    (lambda: tilewise.set_verbose("x"), "level: 'x'"),
    (lambda: tilewise.build([P], jobs="x"), "jobs: 'x'"),
    (lambda: tilewise.build(P), "put it into a list: ..gemm:m=4"),
    (lambda: tilewise.tune(tilewise.Problem(P)), "put it into a list"),
    (lambda: tilewise.tune([P], seconds="x"), "seconds: expected a number"),
    (lambda: tilewise.tune([P], seconds=-1), "seconds: -1; need 0 or more"),
    (lambda: tilewise.Registry(5), "name: expected a text, got int"),
    (lambda: tilewise.Registry().merge(5), "other: expected a Registry"),
    (lambda: tilewise.Dispatcher(packs="a.pack"), r"packs: .* put it into a list: \['a.pack'\]"),
    (lambda: tilewise.Dispatcher(packs=None), "packs: expected a list of files, got None"),
    (lambda: tilewise.Dispatcher(packs=[5]), r"packs: expected a list of files, got \[5\]"),
    (lambda: tilewise.Dispatcher(threads="x").select(P), "threads: 'x'"),
    (lambda: tilewise.Dispatcher(rank=lambda *_: None).select(P), "rank: it returned a NoneType; need a list"),
    (lambda: tilewise.Dispatcher(rank=lambda *_: ["nope"]).select(P), "rank: 'nope' is none of the .* candidates"),
    (lambda: tilewise.Dispatcher(rank=lambda *_: [-1]).select(P), "rank: -1 is no place in the list of candidates; need 0 to"),
    (lambda: tilewise.Dispatcher(rank=lambda _, names, __: [len(names)]).select(P), "rank: [0-9]+ is no place"),
    (lambda: tilewise.Dispatcher().time_host(P, A, B, warmup="x"), "warmup: 'x' is not a whole number"),
    (lambda: tilewise.Dispatcher().time_host(P, A, B, repeat=-1), "repeat: -1; need 0 or more"),
    (lambda: tilewise.conv_forward(X[:, ::-1], W), "x: its strides are .* make it contiguous"),
])
def test_other_arguments_are_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_numbers_of_numpy_are_sizes():
    assert tilewise.Problem("gemm", m=np.int64(4), n=np.int32(6), k=8, dtype=np.float32).text == tilewise.Problem(P).text
    config = tilewise.KernelConfig(tilewise.kernels("gemm", dtype="fp32", rule_set="builtin")[0])
    assert tilewise.check({**config.values, "split_k": np.int64(1)}).valid
