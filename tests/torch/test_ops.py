# SPDX-License-Identifier: MIT
"""The functions and ops of tilewise.torch against torch's, in float64 where that is more exact: values, gradients,
gradients of gradients, memory formats, empty operands, wrong ones.
"""
import pytest
import tilewise.torch as tt
import torch
import torch.nn.functional as F
from against_torch import BOUND, DEVICE, assert_close, compare, make, to_channels_last
from torch._subclasses.fake_tensor import FakeTensorMode

@pytest.mark.parametrize("layout", ["rcr", "rrr", "ccr", "crc"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_gemm(layout, batch):
    m, n, k = 9, 11, 13
    a = make(*batch, *((m, k) if layout[0] == "r" else (k, m)), grad=True)
    b = make(*((k, n) if layout[1] == "r" else (n, k)), grad=True)  # shared by the batch
    bias = make(n, grad=True)

    def exact(a, b, bias):
        c = (a if layout[0] == "r" else a.mT) @ (b if layout[1] == "r" else b.mT) + bias
        return c if layout[2] == "r" else c.mT

    compare(lambda a, b, bias: tt.gemm(a, b, layout=layout, bias=bias), exact, a, b, bias)


@pytest.mark.parametrize("dtype", list(BOUND))
def test_linear(dtype):
    x, w, bias = make(2, 5, 24, dtype=dtype, grad=True), make(7, 24, dtype=dtype, grad=True), make(7, dtype=dtype, grad=True)
    compare(tt.linear, F.linear, x, w, bias)


ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "relu+tanh": lambda x: torch.tanh(F.relu(x))}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_with_and_without_gradients(activation):
    x, w = make(6, 8, grad=True), make(5, 8, grad=True)
    compare(lambda x, w: tt.linear(x, w, activation=activation), lambda x, w: ACTIVATIONS[activation](F.linear(x, w)), x, w)
    with torch.no_grad():
        assert_close(tt.linear(x, w, activation=activation), ACTIVATIONS[activation](F.linear(x, w)))


CONVS = {
    "1d": (tt.conv1d, F.conv1d, (2, 6, 15), (8, 3, 4), {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}),
    "2d": (tt.conv2d, F.conv2d, (2, 6, 9, 8), (4, 6, 3, 3), {"stride": (2, 1), "padding": (1, 2)}),
    "depthwise": (tt.conv2d, F.conv2d, (2, 8, 7, 7), (8, 1, 3, 3), {"padding": 1, "groups": 8}),
    "same": (tt.conv2d, F.conv2d, (1, 4, 6, 7), (6, 2, 2, 4), {"padding": "same", "groups": 2}),
    "pointwise": (tt.conv2d, F.conv2d, (2, 16, 5, 5), (8, 16, 1, 1), {}),
    "3d": (tt.conv3d, F.conv3d, (1, 4, 5, 6, 4), (6, 2, 3, 2, 2), {"stride": (1, 2, 1), "padding": 1, "groups": 2}),
}


@pytest.mark.parametrize("case", CONVS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_conv(convolutions, case, channels_last):
    ours, theirs, shape, filters, options = CONVS[case]
    x, w, bias = make(*shape), make(*filters), make(filters[0], grad=True)
    if channels_last and x.dim() > 3:
        x, w = to_channels_last(x), to_channels_last(w)
    x.requires_grad_(), w.requires_grad_()
    compare(lambda x, w, bias: ours(x, w, bias, **options), lambda x, w, bias: theirs(x, w, bias, **options), x, w, bias)
    with torch.no_grad():
        y = ours(x, w, bias, activation="relu", **options)
    assert_close(y, F.relu(theirs(x.double(), w.double(), bias.double(), **options)))
    assert y.stride() == theirs(x, w, bias, **options).stride()


TRANSPOSED = {
    "1d": (tt.conv_transpose1d, F.conv_transpose1d, (2, 6, 9), (6, 4, 4), 8,
           {"stride": 3, "padding": 2, "output_padding": 2, "groups": 2}),
    "2d": (tt.conv_transpose2d, F.conv_transpose2d, (2, 6, 5, 4), (6, 5, 3, 3), 5,
           {"stride": (2, 1), "padding": (1, 0), "output_padding": (1, 0)}),
    "dilated": (tt.conv_transpose2d, F.conv_transpose2d, (1, 4, 5, 5), (4, 3, 3, 2), 6, {"dilation": (2, 3), "groups": 2}),
    "padded less": (tt.conv_transpose2d, F.conv_transpose2d, (1, 4, 5, 5), (4, 3, 3, 3), 3,
                    {"dilation": 3, "padding": 2, "output_padding": 2}),
    "out of reach": (tt.conv_transpose2d, F.conv_transpose2d, (1, 4, 5, 5), (4, 3, 3, 3), 3,
                     {"dilation": 4, "padding": (0, 1), "output_padding": (2, 3)}),
    "3d": (tt.conv_transpose3d, F.conv_transpose3d, (1, 4, 3, 4, 3), (4, 3, 2, 3, 2), 6,
           {"stride": (1, 2, 2), "padding": (0, 1, 0), "output_padding": (0, 1, 1), "groups": 2}),
}


@pytest.mark.parametrize("case", TRANSPOSED)
@pytest.mark.parametrize("channels_last", [False, True])
def test_conv_transpose(convolutions, case, channels_last):
    ours, theirs, shape, filters, channels, options = TRANSPOSED[case]
    x, w, bias = make(*shape), make(*filters), make(channels, grad=True)
    if channels_last and x.dim() > 3:
        x, w = to_channels_last(x), to_channels_last(w)
    x.requires_grad_(), w.requires_grad_()
    compare(lambda x, w, bias: ours(x, w, bias, **options), lambda x, w, bias: theirs(x, w, bias, **options), x, w, bias)
    with torch.no_grad():
        y = ours(x, w, bias, activation="relu", **options)
    assert_close(y, F.relu(theirs(x.double(), w.double(), bias.double(), **options)))
    assert_close(ours(x[0], w, bias, **options), theirs(x[0], w, bias, **options))


def layouts(*shape):
    """A tensor in every memory format that it may come in."""
    x = make(*shape)
    yield x
    yield x.movedim(1, -1).contiguous().movedim(-1, 1)  # the memory of channels-last, also of three dimensions
    if x.dim() > 3:
        yield to_channels_last(x)
    yield make(*shape[:-1], shape[-1] * 2)[..., ::2]
    yield make(shape[0], shape[1] + 2, *shape[2:])[:, 1:-1]
    yield x[:1].expand(shape)


FORMATS = [((2, 6, 7), (4, 6, 3)), ((2, 6, 5, 4), (4, 6, 3, 2)), ((2, 6, 5, 4), (4, 6, 1, 1)), ((2, 1, 5, 4), (4, 1, 3, 3)),
           ((2, 6, 1, 1), (4, 6, 1, 1)), ((2, 6, 5, 4), (1, 6, 3, 3)), ((1, 1, 1, 5), (3, 1, 1, 1)),
           ((2, 4, 3, 4, 5), (4, 4, 2, 3, 3))]


@pytest.mark.parametrize("shape, filters", FORMATS)
def test_results_lie_in_memory_as_torchs_do(convolutions, shape, filters):
    dims = len(shape) - 2
    ours, theirs = getattr(tt, f"conv{dims}d"), getattr(F, f"conv{dims}d")
    geometry = ([1] * dims, [0] * dims, [0] * dims, [1] * dims, 1)
    for x in layouts(*shape):
        for w in layouts(*filters) if dims > 1 else [make(*filters)]:  # in torch, transposed filters transpose a result of 1d
            want = theirs(x, w)
            have = ours(x, w)
            assert have.stride() == want.stride() and not have._is_view(), (x.stride(), w.stride())
            assert_close(have, want)
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                fake = torch.ops.tilewise.conv(mode.from_tensor(x), mode.from_tensor(w), None, None, *geometry, "")
            assert fake.stride() == want.stride()


def test_gradients_lie_in_memory_as_torchs_do(convolutions):
    for form in (torch.contiguous_format, torch.channels_last):
        x = make(2, 6, 5, 4).contiguous(memory_format=form)
        strides = []
        for function in (tt.conv2d, F.conv2d):
            image = x.clone().requires_grad_()
            middle = image * 1
            middle.retain_grad()
            function(middle, make(4, 6, 3, 3, grad=True)).sum().backward()
            strides.append(middle.grad.stride())
        assert strides[0] == strides[1]


@pytest.mark.parametrize("function, shape, filters", [
    ("linear", (0, 5), (4, 5)), ("linear", (3, 0, 5), (4, 5)), ("linear", (0,), (4, 0)), ("conv1d", (0, 4, 7), (6, 4, 3)),
    ("conv2d", (0, 4, 7, 7), (6, 4, 3, 3)), ("conv3d", (0, 4, 5, 5, 5), (6, 4, 3, 3, 3)),
    ("conv_transpose2d", (0, 4, 7, 7), (4, 6, 3, 3)), ("linear", (3, 0), (4, 0))])
def test_empty_operands(function, shape, filters):
    results = []
    for module in (tt, F):
        x, w = torch.zeros(shape, device=DEVICE, requires_grad=True), torch.ones(filters, device=DEVICE, requires_grad=True)
        bias = torch.ones(6 if "conv" in function else 4, device=DEVICE, requires_grad=True)
        y = getattr(module, function)(x, w, bias)
        y.sum().backward()
        results.append((y.detach(), x.grad, w.grad, bias.grad))
    for have, want in zip(*results):
        assert have.shape == want.shape and torch.equal(have, want)


def test_an_empty_product():
    a, b, bias = torch.zeros(3, 0, device=DEVICE), torch.zeros(4, 0, device=DEVICE), make(4)
    assert torch.equal(tt.gemm(a, b, bias=bias, activation="relu"), F.relu(bias).expand(3, 4))
    assert tt.gemm(a[:0], b).shape == (0, 4) and tt.gemm(a, b, layout="rcc", bias=bias).shape == (4, 3)


def test_operations_in_place_after_a_function(convolutions):
    x, w = make(2, 4, 6, 6, grad=True), make(4, 4, 3, 3, grad=True)
    for form in (torch.contiguous_format, torch.channels_last):
        compare(lambda x, w: F.relu_(tt.conv2d(x.contiguous(memory_format=form), w).mul_(2)),
                lambda x, w: F.relu(F.conv2d(x, w) * 2), x, w)
        x.grad = w.grad = None
    a, b = make(5, 6, grad=True), make(4, 6, grad=True)
    compare(lambda a, b: tt.linear(a, b).tanh_(), lambda a, b: F.linear(a, b).tanh(), a, b)


def test_what_is_added_in_a_kernel(convolutions):
    x, w, bias, d = make(2, 4, 6, 6), make(6, 4, 3, 3), make(6), make(2, 6, 4, 4)
    geometry = ([1, 1], [0, 0], [0, 0], [1, 1], 1)
    y = torch.ops.tilewise.conv(x, w, bias, d, *geometry, "add+relu")
    assert_close(y, F.relu(F.conv2d(x, w, bias) + d))
    a, b, d = make(2, 3, 8), make(5, 8), make(2, 3, 5)
    assert_close(torch.ops.tilewise.linear(a, b, None, d, "gelu+mul"), F.gelu(F.linear(a, b)) * d)
    with pytest.raises(ValueError, match="'relu' takes 0 tensors d, 1 given"):
        torch.ops.tilewise.linear(a, b, None, d, "relu")
    with pytest.raises(ValueError, match="'add' takes 1 tensors d, 0 given"):
        torch.ops.tilewise.linear(a, b, None, None, "add")


def test_a_fused_activation_has_no_gradient():
    y = torch.ops.tilewise.linear(make(2, 8, grad=True), make(5, 8), None, None, "relu")
    with pytest.raises(RuntimeError, match="'relu' has no gradient"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_conv_types(convolutions, dtype):
    x, w = make(2, 8, 6, 6, dtype=dtype, grad=True), make(6, 4, 3, 3, dtype=dtype, grad=True)
    compare(lambda x, w: tt.conv2d(x, w, padding=1, groups=2), lambda x, w: F.conv2d(x, w, padding=1, groups=2), x, w)


def test_an_image_without_a_batch(convolutions):
    x, w = make(4, 6, 6), make(3, 4, 3, 3)
    assert_close(tt.conv2d(x, w), F.conv2d(x, w))


def test_gradients_of_gradients(convolutions):
    def penalty(function, x, w):
        y = function(x, w)
        (dx,) = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)
        dx.pow(2).sum().backward()
        return w.grad

    for ours, theirs, x, w in ((tt.linear, F.linear, (5, 6), (4, 6)), (tt.conv2d, F.conv2d, (1, 2, 5, 5), (3, 2, 3, 3)),
                               (tt.conv_transpose2d, F.conv_transpose2d, (1, 3, 5, 5), (3, 2, 3, 3))):
        x, w = make(*x, grad=True), make(*w, grad=True)
        exact = penalty(theirs, x.detach().double().requires_grad_(), w.detach().double().requires_grad_())
        have = penalty(ours, x, w)
        assert ((have.double() - exact).abs().max() / exact.abs().max()).item() < 1e-4


@pytest.mark.parametrize("channels_last", [False, True])
def test_ops_are_registered_properly(convolutions, channels_last):
    """torch's own checks: schema, fake implementation, gradients under tracing."""
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic", "test_autograd_registration")
    geometry = ([2, 1], [1, 0], [0, 1], [1, 2], 2)
    x, w, bias = make(2, 4, 7, 8, grad=True), make(6, 2, 3, 3, grad=True), make(6, grad=True)
    if channels_last:
        x = to_channels_last(x).requires_grad_()
    ops = torch.ops.tilewise
    torch.library.opcheck(ops.conv, (x, w, bias, None, *geometry, ""), test_utils=tests)
    dy = ops.conv(x, w, None, None, *geometry, "").detach().requires_grad_()
    shift = make(4, grad=True)
    torch.library.opcheck(ops.conv_backward_data, (dy, w, shift, [7, 8], *geometry, ""), test_utils=tests)
    torch.library.opcheck(ops.conv_backward_weight, (x, dy, [3, 3], *geometry), test_utils=tests)
    a, b = make(3, 4, 5, grad=True), make(6, 5, grad=True)
    torch.library.opcheck(ops.gemm, (a, b, "rcr", bias, ""), test_utils=tests)
    torch.library.opcheck(ops.linear, (a, b, bias, None, ""), test_utils=tests)


def test_autocast():
    x, w = make(4, 8), make(5, 8)
    with torch.autocast(DEVICE.split(":")[0], dtype=torch.bfloat16):
        assert tt.linear(x, w).dtype == torch.bfloat16
    assert tt.linear(x, w).dtype == torch.float32


def test_types_that_differ():
    for call in (lambda: tt.linear(make(2, 8), make(5, 8, dtype=torch.bfloat16)),
                 lambda: tt.conv2d(make(1, 4, 5, 5, dtype=torch.float16), make(4, 4, 3, 3))):
        with pytest.raises(TypeError, match="need the same: cast one"):
            call()


@pytest.mark.parametrize("size", [(2, 3), (3, 1)])
def test_an_image_smaller_than_the_filter(convolutions, size):
    """One row less than the filter, which a stride would round to no result."""
    for make_input in (make, lambda *shape: torch.empty(shape, device="meta")):
        with pytest.raises(RuntimeError, match="is smaller than the filter"):
            tt.conv2d(make_input(1, 4, *size), make_input(6, 4, 3, 3), stride=2, padding=(0, 0))


@pytest.mark.parametrize("call, message", [
    (lambda: tt.linear(make(2, 3), make(4, 3), make(3)), r"bias: shape \(3,\); need \(4,\)"),
    (lambda: tt.conv_transpose2d(make(1, 4, 5, 5), make(3, 4, 3, 3)), "x has 4 channels"),
    (lambda: tt.conv_transpose2d(make(1, 4, 5, 5), make(4, 4, 3, 3), output_padding=1), "output_padding: 1; need less"),
    (lambda: tt.gemm(make(2, 3), make(2, 3), layout="xyz"), "layout: 'xyz'"),
    (lambda: tt.gemm(make(3), make(2, 3)), "a: 1 dimensions"),
    (lambda: tt.linear(make(2, 3), make(4, 5)), "do not match"),
    (lambda: tt.linear(make(2, 3, grad=True), make(4, 3), activation="selu"), "activation: 'selu'"),
    (lambda: tt.conv2d(make(1, 4, 5, 5), make(4, 3, 3, 3)), "x has 4 channels"),
    (lambda: tt.conv2d(make(1, 4, 5, 5), make(4, 4, 3)), "conv2d needs 4"),
    (lambda: tt.conv2d(make(1, 4, 5, 5), make(4, 4, 3, 3), stride=(1, 1, 1)), "stride: .* need one number, or 2"),
    (lambda: tt.conv2d(make(1, 4, 5, 5), make(4, 4, 3, 3), padding="full"), "padding: 'full'"),
    (lambda: tt.conv2d(make(1, 4, 5, 5), make(4, 4, 3, 3), padding="same", stride=2), "'same' needs a stride of 1"),
])
def test_wrong_inputs(call, message):
    with pytest.raises(ValueError, match=message):
        call()
