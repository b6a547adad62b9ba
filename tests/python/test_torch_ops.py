# SPDX-License-Identifier: MIT
"""tilewise.torch against torch itself, in float64 where that is more exact: values, gradients, gradients of gradients,
torch.compile, models. On the CPU, and on cuda:0 where TILEWISE_TEST_DEVICE says so.
"""
import os

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402  only where torch is installed
from torch import nn  # noqa: E402

import tilewise  # noqa: E402
import tilewise.torch as tt  # noqa: E402

DEVICE = os.environ.get("TILEWISE_TEST_DEVICE", "cpu")
BOUND = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


@pytest.fixture
def convolutions():
    """Skips what needs convolutions where the device has none."""
    try:
        tilewise.prepare("conv_fwd:n=1,c=8,k=8,in=4x4,filter=3x3,dtype=fp32", device=DEVICE)
    except tilewise.UnsupportedError as error:
        pytest.skip(str(error))


def make(*shape, dtype=torch.float32, grad=False):
    return (torch.rand(shape, device=DEVICE) * 2 - 1).to(dtype).requires_grad_(grad)


def assert_close(have, want):
    assert have.shape == want.shape
    bound = BOUND[have.dtype] * (want.detach().abs().max().item() + 1)
    assert (have.detach().double() - want.detach().double()).abs().max().item() <= bound


def compare(ours, theirs, *inputs):
    """Values and gradients; theirs is computed in float64."""
    exact = [None if x is None else x.detach().double().requires_grad_(x.requires_grad) for x in inputs]
    have, want = ours(*inputs), theirs(*exact)
    assert_close(have, want)
    weights = torch.rand(want.shape, dtype=torch.float64, device=DEVICE)
    (have * weights.to(have.dtype)).sum().backward()
    (want * weights.to(have.dtype).double()).sum().backward()
    for x, y in zip(inputs, exact):
        if x is not None and x.requires_grad:
            assert x.grad.dtype == x.dtype
            assert_close(x.grad, y.grad)


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
    if channels_last and x.dim() == 4:
        x, w = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
    x.requires_grad_(), w.requires_grad_()
    compare(lambda x, w, bias: ours(x, w, bias, **options), lambda x, w, bias: theirs(x, w, bias, **options), x, w, bias)
    with torch.no_grad():
        y = ours(x, w, bias, activation="relu", **options)
    assert_close(y, F.relu(theirs(x.double(), w.double(), bias.double(), **options)))
    if x.dim() == 4:
        assert y.is_contiguous(memory_format=torch.channels_last)


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

    for ours, theirs, x, w in ((tt.linear, F.linear, (5, 6), (4, 6)), (tt.conv2d, F.conv2d, (1, 2, 5, 5), (3, 2, 3, 3))):
        x, w = make(*x, grad=True), make(*w, grad=True)
        exact = penalty(theirs, x.detach().double().requires_grad_(), w.detach().double().requires_grad_())
        have = penalty(ours, x, w)
        assert ((have.double() - exact).abs().max() / exact.abs().max()).item() < 1e-4


def test_ops_are_registered_properly(convolutions):
    """torch's own checks: schema, fake implementation, gradients under tracing."""
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic", "test_autograd_registration")
    geometry = ([2, 1], [1, 0], [0, 1], [1, 2], 2)
    x, w, bias = make(2, 4, 7, 8, grad=True), make(6, 2, 3, 3, grad=True), make(6, grad=True)
    torch.library.opcheck(torch.ops.tilewise.conv, (x, w, bias, *geometry, ""), test_utils=tests)
    dy = torch.ops.tilewise.conv(x, w, None, *geometry, "").detach().requires_grad_()
    torch.library.opcheck(torch.ops.tilewise.conv_backward_data, (dy, w, [7, 8], *geometry), test_utils=tests)
    torch.library.opcheck(torch.ops.tilewise.conv_backward_weight, (x, dy, [3, 3], *geometry), test_utils=tests)
    a, b = make(3, 4, 5, grad=True), make(6, 5, grad=True)
    torch.library.opcheck(torch.ops.tilewise.gemm, (a, b, "rcr", bias, ""), test_utils=tests)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.reflected = nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect")
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        return self.last(F.relu(self.reflected(self.depthwise(F.relu(self.first(x))))).mean((2, 3)))


def gradients(model, x):
    model.zero_grad()
    model(x).pow(2).sum().backward()
    return {name: value.grad.clone() for name, value in model.named_parameters()}


def test_replace_a_models_layers(convolutions):
    model = Net().to(DEVICE)
    x = make(2, 3, 8, 8)
    want, wanted = model(x), gradients(model, x)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    report = tt.replace(model)
    assert report.replaced == {"first": "Conv2d", "depthwise": "Conv2d", "last": "Linear"} and report.model is model
    assert "padding_mode is reflect" in report.kept["reflected"] and "3 layers replaced, 1 kept" in str(report)
    assert isinstance(model.first, tt.Conv2d) and isinstance(model.first, nn.Conv2d)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert_close(model(x), want)
    for name, gradient in gradients(model, x).items():
        assert_close(gradient, wanted[name])
    assert tt.replace(model).replaced == {}, "the second time there is nothing left to do"


def test_what_replace_leaves_alone():
    class Special(nn.Linear):
        pass

    report = tt.replace(nn.Sequential(Special(2, 2), nn.Linear(2, 2).double(), nn.Linear(2, 2)))
    assert list(report.replaced) == ["2"] and "subclass" in report.kept["0"] and "float64" in report.kept["1"]


@pytest.mark.skipif(os.environ.get("TILEWISE_TEST_COMPILE") == "0", reason="torch.compile is switched off")
def test_torch_compile(convolutions):
    model = Net().to(DEVICE)
    tt.replace(model)
    x = make(2, 3, 8, 8)
    want, wanted = model(x), gradients(model, x)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    assert_close(compiled(x), want)
    for name, gradient in gradients(compiled, x).items():
        assert_close(gradient, wanted[name.removeprefix("_orig_mod.")])
    other = make(3, 3, 10, 9)
    assert_close(compiled(other), model(other))


def test_autocast():
    x, w = make(4, 8), make(5, 8)
    with torch.autocast(DEVICE.split(":")[0], dtype=torch.bfloat16):
        assert tt.linear(x, w).dtype == torch.bfloat16
    assert tt.linear(x, w).dtype == torch.float32


@pytest.mark.parametrize("call, message", [
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


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_cuda_graphs(convolutions):
    model = Net().to(DEVICE)
    tt.replace(model)
    x = make(2, 3, 8, 8)
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            model(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        x.copy_(make(2, 3, 8, 8))
        graph.replay()
        torch.cuda.synchronize()
        assert_close(y, model(x))
