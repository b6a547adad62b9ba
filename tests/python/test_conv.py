# SPDX-License-Identifier: MIT
"""tilewise.conv_forward, conv_backward_data and conv_backward_weight on NumPy arrays, against the definition in float64."""
import ml_dtypes
import numpy as np
import pytest
from conv_reference import backward_data, backward_weight, forward

import tilewise

# Half a unit in the last place of each type, four times over; sums are compared relative to what they add up.
EPSILON = {"float32": 2.0 ** -21, "float16": 2.0 ** -9, "bfloat16": 2.0 ** -6, "int32": 0.0}


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def random(rng, shape, dtype=np.float32):
    if np.dtype(dtype) == np.int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.uniform(-1, 1, shape).astype(dtype)


def assert_close(have, want):
    bound = EPSILON[have.dtype.name] * (np.abs(want).max() + 1)
    assert have.shape == want.shape
    np.testing.assert_allclose(have.astype(np.float64), want, rtol=0, atol=bound)


# images, input, groups, channels in a group, filters in a group, filter, stride, padding, dilation
CASES = [
    (2, (9, 8), 3, 4, 5, (3, 3), (2, 1), (1, 2), (1, 2)),
    (1, (12, 12), 8, 1, 1, (5, 5), 1, 2, 1),  # depthwise
    (2, (7, 7), 1, 16, 24, (1, 1), 2, 0, 1),  # pointwise
    (2, (17,), 2, 3, 4, (5,), 2, 2, 2),
    (1, (5, 6, 4), 2, 3, 4, (3, 2, 2), (1, 2, 1), 1, 1),
    (1, (6, 5), 2, 4, 4, (3, 2), 1, ((1, 0), (2, 1)), 1),  # asymmetric
]


def operands(rng, case, dtype=np.float32):
    n, size, g, c, k, taps, stride, padding, dilation = case
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return random(rng, (n, *size, g, c), dtype), random(rng, (g, k, *taps, c), dtype), options


@pytest.mark.parametrize("case, dtype", [*((case, np.float32) for case in CASES), (CASES[0], np.float16),
                                         (CASES[0], ml_dtypes.bfloat16)])
def test_three_directions(rng, case, dtype):
    x, w, options = operands(rng, case, dtype)
    want = forward(x, w, **options)
    y = tilewise.conv_forward(x, w, **options)
    assert y.dtype == dtype
    assert_close(y, want)
    dy = random(rng, y.shape, dtype)
    size, taps = x.shape[1:-2], w.shape[2:-1]
    dx = tilewise.conv_backward_data(dy, w, input_size=size, **options)
    assert dx.dtype == dtype
    assert_close(dx, backward_data(dy, w, size, **options))
    dw = tilewise.conv_backward_weight(x, dy, filter_size=taps, **options)
    assert dw.dtype == dtype
    assert_close(dw, backward_weight(x, dy, taps, **options))


def test_int8_adds_up_in_int32(rng):
    x, w, options = operands(rng, CASES[0], np.int8)
    y = tilewise.conv_forward(x, w, **options)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, forward(x, w, **options))


@pytest.mark.compiles
def test_bias_activation_out_and_scalars(rng):
    x, w, options = operands(rng, CASES[0])
    bias = random(rng, (15,))
    want = forward(x, w, **options)
    shifted = want + bias.astype(np.float64).reshape(3, 5)
    assert_close(tilewise.conv_forward(x, w, bias=bias, activation="relu", **options), np.maximum(shifted, 0))
    out = np.full(want.shape, np.nan, np.float32)
    assert tilewise.conv_forward(x, w, out=out, **options) is out
    assert_close(out, want)
    tilewise.conv_forward(x, w, out=out, alpha=2.0, beta=-1.0, **options)
    assert_close(out, want)
    d = random(rng, want.shape)
    assert_close(tilewise.conv_forward(x, w, d=d, d_op="mul", **options), want * d.astype(np.float64))
    assert_close(tilewise.conv_forward(x.astype(np.float16), w.astype(np.float16), out_dtype="fp32", **options),
                 forward(x.astype(np.float16), w.astype(np.float16), **options))


def test_gradients_are_added_up(rng):
    x, w, options = operands(rng, CASES[0])
    dy = random(rng, forward(x, w, **options).shape)
    dw = np.ones(w.shape, np.float32)
    tilewise.conv_backward_weight(x, dy, filter_size=(3, 3), out=dw, beta=1.0, **options)
    assert_close(dw, 1 + backward_weight(x, dy, (3, 3), **options))


def test_numbers_lists_and_tuples_mean_the_same(rng):
    x, w = random(rng, (1, 8, 8, 2, 4)), random(rng, (2, 4, 3, 3, 4))
    want = tilewise.conv_forward(x, w, stride=2, padding=1)
    for stride, padding in (((2, 2), (1, 1)), ([2, 2], [1, 1]), (np.int64(2), [[1, 1], (1, 1)]), (2, (1, (1, 1)))):
        np.testing.assert_array_equal(tilewise.conv_forward(x, w, stride=stride, padding=padding), want)
    dy = random(rng, want.shape)
    np.testing.assert_array_equal(tilewise.conv_backward_data(dy, w, input_size=8, stride=2, padding=1),
                                  tilewise.conv_backward_data(dy, w, input_size=[8, 8], stride=2, padding=1))


X, W = np.ones((1, 8, 8, 2, 4), np.float32), np.ones((2, 4, 3, 3, 4), np.float32)


@pytest.mark.parametrize("arguments, options, error, message", [
    (([1.0], W), {}, TypeError, "x: expected a NumPy array"),
    ((X, None), {}, TypeError, "w: expected"),
    ((X.astype(np.float64), W), {}, TypeError, "x: dtype .*float64.* is not supported"),
    ((X, W.astype(np.float16)), {}, tilewise.Error, "fp16"),
    ((X[0], W), {}, ValueError, "x .* has 1 spatial dimensions, w .* has 2"),
    ((X[0, 0], W), {}, ValueError, r"x: 3 dimensions \(8, 2, 4\); need \(images"),
    ((X, W[:1]), {}, ValueError, "x .* has 2 groups, w .* has 1"),
    ((X, W[..., :3]), {}, ValueError, "4 channels in a group, w .* has 3"),
    ((X, W), {"stride": (1, 1, 1)}, ValueError, "stride: .* 3 numbers, the operands have 2 spatial dimensions"),
    ((X, W), {"stride": 1.5}, TypeError, "stride: 1.5 is not a whole number"),
    ((X, W), {"stride": "1"}, TypeError, "stride: '1' is not a whole number"),
    ((X, W), {"stride": 0}, tilewise.UnsupportedError, "stride"),
    ((X, W), {"padding": ((1, 2, 3), (1, 2, 3))}, ValueError, r"padding: .* a pair \(before, after\)"),
    ((X, W), {"dilation": 9}, tilewise.UnsupportedError, "filter"),
    ((X, W), {"bias": np.ones(4, np.float32)}, ValueError, r"bias: its shape is \(4,\), the problem needs \(8,\)"),
    ((X, W), {"out": np.ones((1, 6, 6, 2, 5), np.float32)}, ValueError, r"out: its shape is .* needs \(1, 6, 6, 2, 4\)"),
    ((X, W), {"beta": 1.0}, ValueError, "out must be given"),
    ((X.transpose(0, 2, 1, 3, 4), W), {}, ValueError, "x: its strides are .* the problem needs"),
    ((X, W), {"strategy": "nonsense"}, tilewise.UsageError, "nonsense"),
    ((X, W), {"activation": "relu7"}, tilewise.UsageError, "relu7"),
])
def test_wrong_inputs(arguments, options, error, message):
    with pytest.raises(error, match=message):
        tilewise.conv_forward(*arguments, **options)


def test_wrong_inputs_of_the_gradients():
    dy = np.ones((1, 6, 6, 2, 4), np.float32)
    with pytest.raises(ValueError, match=r"dy: its shape is .* the problem needs \(1, 7, 7, 2, 4\)"):
        tilewise.conv_backward_data(dy, W, input_size=9)
    with pytest.raises(ValueError, match=r"input_size: \(8,\) has 1 numbers"):
        tilewise.conv_backward_data(dy, W, input_size=(8,))
    with pytest.raises(ValueError, match=r"dy: its shape is .* the problem needs \(1, 7, 7, 2, 4\)"):
        tilewise.conv_backward_weight(X, dy, filter_size=2)
    with pytest.raises(ValueError, match="has 1 images, x .* has 2"):
        tilewise.conv_backward_weight(np.concatenate([X, X]), dy, filter_size=3)


def test_a_problem_can_be_prepared_by_its_text(rng):
    prepared = tilewise.prepare("conv_fwd:n=1,g=2,c=8,k=8,in=8x8,filter=3x3,dtype=fp32")
    x, w = random(rng, X.shape), random(rng, W.shape)
    assert_close(prepared(x, w), forward(x, w))
    assert prepared.operands["c"].shape == (1, 6, 6, 2, 4)


def test_no_images():
    """Nothing to convolve gives nothing; a gradient of weights is a sum without terms."""
    x, w = np.zeros((0, 8, 8, 2, 4), np.float32), np.ones((2, 3, 3, 3, 4), np.float32)
    y = tilewise.conv_forward(x, w, padding=1)
    assert y.shape == (0, 8, 8, 2, 3)
    assert tilewise.conv_backward_data(y, w, input_size=8, padding=1).shape == x.shape
    dw = tilewise.conv_backward_weight(x, y, filter_size=3, padding=1)
    np.testing.assert_array_equal(dw, np.zeros_like(w))
    tilewise.conv_backward_weight(x, y, filter_size=3, padding=1, out=w, beta=3)
    np.testing.assert_array_equal(w, np.full_like(w, 3))


def test_a_wrong_gradient_is_refused_before_anything_is_compiled(monkeypatch):
    def never(*_):
        raise AssertionError("the problem was prepared")

    monkeypatch.setattr("tilewise._entry.open_executable", never)
    w, x = np.ones((1, 4, 3, 3, 4), np.float32), np.ones((1, 8, 8, 1, 4), np.float32)
    dy = np.ones((1, 5, 5, 1, 4), np.float32)
    with pytest.raises(ValueError, match=r"dy: its shape is \(1, 5, 5, 1, 4\).*needs \(1, 6, 6, 1, 4\)"):
        tilewise.conv_backward_data(dy, w, input_size=8)
    with pytest.raises(ValueError, match=r"dy: its shape is .*needs \(1, 6, 6, 1, 4\)"):
        tilewise.conv_backward_weight(x, dy, filter_size=3)


@pytest.mark.parametrize("x, w", [((1, 3, 8, 8), (4, 3, 3, 3)), ((3, 8, 8), (4, 3, 3, 3)), ((8, 3, 4), (4, 3, 3))])
def test_arrays_in_the_order_of_torch_are_pointed_elsewhere(x, w):
    with pytest.raises(ValueError, match="tilewise.torch.conv1d, conv2d and conv3d"):
        tilewise.conv_forward(np.ones(x, np.float32), np.ones(w, np.float32))
