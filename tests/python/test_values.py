# SPDX-License-Identifier: MIT
"""Words that callers give are values of their fields: none can become another field of the problem, and what the library
wants is compared with the arrays that are there.
"""
import numpy as np
import pytest

import tilewise

N = 16
X, W = np.ones((1, 4, 4, 1, 4), np.float32), np.ones((1, 4, 1, 1, 4), np.float32)
D = np.ones((N, N), np.float32)


@pytest.mark.parametrize("options", [
    {"math": f"strict,ldc={N + 1}"}, {"math": "fast,out=fp16"}, {"activation": "relu,out=fp16"},
    {"activation": "relu,ldc=99"}, {"d": D, "d_op": "add,out=fp16"}, {"d": D, "d_op": ["add,ldc=99"]},
    {"activation": 'relu", "out": "fp16'}, {"activation": "relu\0"},
])
def test_a_word_cannot_become_another_field(options):
    for _ in range(2):
        with pytest.raises(tilewise.UsageError, match="unknown (math class|epilogue operation|D operation)"):
            tilewise.gemm(D, D, **options)
    convolution = {key: value for key, value in options.items() if key in ("math", "activation")}
    if convolution:
        with pytest.raises(tilewise.UsageError, match="unknown"):
            tilewise.conv_forward(X, W, **convolution)


@pytest.mark.parametrize("options, error, message", [
    ({"layout": "rcr,ldc=17"}, ValueError, "layout"), ({"math": None}, TypeError, "math: expected a word, got NoneType"),
    ({"math": 5}, TypeError, "math"), ({"activation": 5}, TypeError, "activation: expected a word"),
    ({"activation": "bias"}, ValueError, "bias: the problem .* needs it"),
    ({"d": D, "d_op": ["add+mul"]}, ValueError, "2 operations for 1 arrays"),
    ({"out_dtype": "fp16,ldc=17"}, TypeError, "dtype"),
])
def test_other_words_are_refused(options, error, message):
    for _ in range(2):
        with pytest.raises(error, match=message):
            tilewise.gemm(D, D, **options)


def test_extents_of_the_original_are_numbers():
    from tilewise.grouped_conv_utils import GroupedConvProblem
    with pytest.raises(TypeError):
        GroupedConvProblem(N=1, C=4, K=4, Hi="8x8", Wi=8, Y="3x3", X=3)


@pytest.mark.compiles
def test_the_library_must_want_what_is_there(monkeypatch):
    """A second line of defence: whatever a problem says, its operands are compared with the arrays."""
    from tilewise._gemm_problem import GemmCall
    honest = GemmCall.fields
    a = np.ones((9, 7), np.float32)
    for extra, error, message in (
            ({"ldc": 65}, ValueError, "out: its strides"), ({"out": "fp16"}, TypeError, "out: it is of"),
            ({"lda": 8}, ValueError, "a: its strides"), ({"m": 10}, ValueError, "a: its shape"),
            ({"epilogue": "bias"}, ValueError, "bias: .* needs"), ({"scale": "tensor"}, ValueError, "scale_a: .* needs")):
        monkeypatch.setattr(GemmCall, "fields", lambda self, *given, extra=extra: {**honest(self, *given), **extra})
        with pytest.raises(error, match=message):
            tilewise.gemm(a, a, out_dtype="fp32")


def test_a_type_that_contradicts_out_is_refused_later_too():
    out = np.empty((N, N), np.float32)
    tilewise.gemm(D, D, out=out)
    for _ in range(2):
        with pytest.raises(TypeError, match="out_dtype: fp16, but out is of fp32"):
            tilewise.gemm(D, D, out=out, out_dtype="fp16")
