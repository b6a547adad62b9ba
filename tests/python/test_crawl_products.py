# SPDX-License-Identifier: MIT
"""The problems of a model's operations and of their gradients, against NumPy: what each computes, and how it lies."""
import math

import numpy as np
import pytest

import tilewise
from tilewise._crawl_products import Unmappable, convolution, gradients, product, transposed
from tilewise._verbs import main


def stored(matrix, letter):
    return np.ascontiguousarray(matrix if letter == "r" else matrix.T)


def evaluate(fields, first, second):
    """The product that a problem computes from two arrays in its layout."""
    a = first.reshape(fields["m"], fields["k"]) if fields["layout"][0] == "r" else first.reshape(fields["k"], fields["m"]).T
    b = second.reshape(fields["k"], fields["n"]) if fields["layout"][1] == "r" else second.reshape(fields["n"], fields["k"]).T
    return a @ b


@pytest.mark.parametrize("a", "rc")
@pytest.mark.parametrize("b", "rc")
def test_gradients_of_a_product(a, b):
    """Each is the problem of arrays that are there, and its result lies as the operand it belongs to."""
    rng = np.random.default_rng(1)
    x, w, dy = rng.normal(size=(3, 5)), rng.normal(size=(5, 7)), rng.normal(size=(3, 7))
    fields = product("fp32", (3, 5), (5, 7), layout=a + b + "r", bias=True)
    assert "epilogue" in fields
    of_x, of_w = gradients(fields)
    assert "epilogue" not in of_x and "epilogue" not in of_w and of_x["layout"][2] == of_w["layout"][2] == "r"
    first, second = (dy, stored(w, b)) if a == "r" else (stored(w, b), dy)
    np.testing.assert_allclose(evaluate(of_x, first, second), stored(dy @ w.T, a))
    first, second = (stored(x, a), dy) if b == "r" else (dy, stored(x, a))
    np.testing.assert_allclose(evaluate(of_w, first, second), stored(x.T @ dy, b))


@pytest.mark.parametrize("a, b, expected", [
    ((4, 5), (5, 6), {"m": 4, "n": 6, "k": 5}),
    ((2, 3, 4, 5), (5, 6), {"m": 24}),  # one product with all the rows
    ((2, 3, 4, 5), (2, 3, 5, 6), {"m": 4, "batch": 6}),
    ((4, 5), (3, 5, 6), {"m": 4, "batch": 3, "batch_stride_a": 0}),
    ((1, 4, 5), (3, 5, 6), {"batch": 3, "batch_stride_a": 0}),
    ((5,), (5, 6), {"m": 1, "n": 6}), ((4, 5), (5,), {"m": 4, "n": 1}),
])
def test_products_are_those_of_numpy(a, b, expected):
    fields = product("fp32", a, b)
    assert {name: fields.get(name) for name in expected} == expected
    size = np.matmul(np.zeros(a), np.zeros(b)).size
    assert tilewise.Problem(fields).flops == 2 * size * a[-1]


def test_products_that_are_none():
    with pytest.raises(Unmappable, match="repeats in part"):
        product("fp32", (2, 1, 4, 5), (1, 3, 5, 6))
    with pytest.raises(Unmappable, match="do not fit"):
        product("fp32", (4, 5), (6, 7))
    with pytest.raises(Unmappable, match="repeated"):
        gradients(product("fp32", (4, 5), (3, 5, 6)))


OPTIONS = {"stride": (2, 2), "pads": [(1, 1), (1, 1)], "dilation": (1, 1), "groups": 2, "bias": False}


def test_gradients_of_a_convolution_are_its_other_directions():
    fields = convolution("bf16", (8, 4, 9, 9), (6, 2, 3, 3), **OPTIONS)
    assert tilewise.Problem(fields).text == ("conv_fwd:n=8,g=2,c=4,k=6,in=9x9,filter=3x3,stride=2x2,pad=1x1,dilation=1x1,"
                                             "dtype=bf16,layout=ngchw")
    assert [one["op"] for one in gradients(fields)] == ["conv_bwd_data", "conv_bwd_weight"]
    with pytest.raises(Unmappable, match="6 dimensions"):
        convolution("bf16", (1,) * 6, (1,) * 6, **OPTIONS)


@pytest.mark.parametrize("size", [9, 10])  # the second has an output padding of one
def test_a_transposed_convolution_is_a_gradient_of_data(size):
    fields = transposed("fp32", (8, 6, 5, 5), (6, 2, 3, 3), (8, 4, size, size), **OPTIONS)
    problem = tilewise.Problem(fields)
    assert problem.op == "conv_bwd_data" and (problem.c, problem.k) == (4, 6) and problem.output == [5, 5]
    assert problem.flops == 2 * 8 * 25 * 6 * 2 * math.prod((3, 3))
    assert [one["op"] for one in gradients(fields)] == ["conv_fwd", "conv_bwd_weight"]


def test_a_transposed_convolution_that_leads_nowhere():
    with pytest.raises(Unmappable, match="no convolution leads back"):
        transposed("fp32", (8, 6, 5, 5), (6, 2, 3, 3), (8, 4, 12, 12), **OPTIONS)


@pytest.mark.parametrize("words, message", [
    (["model.txt"], "model.txt: a model's file ends in .onnx or .pt2"), (["nowhere.onnx"], "nowhere.onnx: no such file"),
    (["nowhere.onnx", "--set", "N"], "--set takes NAME=SIZE"), (["nowhere.onnx", "--set", "N=0"], "not 'N=0'"),
])
def test_refused(words, message, capsys):
    assert main(["crawl", *words]) == 2
    assert message in capsys.readouterr().err
