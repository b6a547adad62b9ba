# SPDX-License-Identifier: MIT
"""The C++ ops: against torch in float64, against the Python ops, from many threads, in forked children; and what they refuse.
On the CPU, and on cuda:0 where TILEWISE_TEST_DEVICE says so.
"""
import concurrent.futures
import os
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402  only where torch is installed

import tilewise.torch as tt  # noqa: E402
from tilewise.torch import _choice, _cpp, _ops, _quick  # noqa: E402

pytestmark = pytest.mark.compiles

DEVICE = os.environ.get("TILEWISE_TEST_DEVICE", "cpu")
BOUND = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}
OPS = torch.ops.tilewise
GEOMETRY = ([2, 1], [1, 0], [0, 1], [1, 2], 2)


@pytest.fixture(autouse=True)
def cpp_ops():
    """Compiled by the first test where they are not in the cache."""
    tt.build_ops()
    assert _cpp.is_loaded()
    torch.manual_seed(7)


def make(*shape, dtype=torch.float32, grad=False):
    return (torch.rand(shape, device=DEVICE) * 2 - 1).to(dtype).requires_grad_(grad)


def assert_close(have, want):
    assert have.shape == want.shape
    bound = BOUND[have.dtype] * (want.detach().abs().max().item() + 1) if want.numel() else 0
    assert have.numel() == 0 or (have.detach().double() - want.detach().double()).abs().max().item() <= bound


def assert_same_form(have, want):
    assert (have.shape, have.stride(), have.dtype) == (want.shape, want.stride(), want.dtype)
    assert not have._is_view()


def exact(x):
    return None if x is None else x.detach().double().requires_grad_(x.requires_grad)


def assert_gradients(ours, theirs, *inputs):
    """Values, gradients, and the gradients of a sum of these."""
    wide = [exact(x) for x in inputs]
    have, want = ours(*inputs), theirs(*wide)
    assert_close(have, want)
    weights = torch.rand(want.shape, dtype=torch.float64, device=DEVICE).to(have.dtype)
    (one, other) = ([x for x in side if x is not None and x.requires_grad] for side in (inputs, wide))
    first = torch.autograd.grad((have * have * weights).sum(), one, create_graph=True)
    second = torch.autograd.grad((want * want * weights.double()).sum(), other, create_graph=True)
    for x, y in zip(first, second):
        assert_close(x, y)
    first = torch.autograd.grad(sum(x.pow(2).sum() for x in first), one)
    second = torch.autograd.grad(sum(x.pow(2).sum() for x in second), other)
    for x, y in zip(first, second):
        assert ((x.double() - y).abs().max() / y.abs().max()).item() < 1e-4


# ---- values and gradients --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 8), (8,), (2, 3, 8), (2, 1, 3, 8)])
def test_linear(shape):
    x, w, bias = make(*shape, grad=True), make(7, 8, grad=True), make(7, grad=True)
    assert_gradients(lambda x, w, bias: OPS.linear(x, w, bias, None, ""), F.linear, x, w, bias)
    assert_gradients(lambda x, w: OPS.linear(x, w, None, None, ""), F.linear, x, w)


@pytest.mark.parametrize("layout", ["rcr", "rrr", "ccr", "crc"])
@pytest.mark.parametrize("batches", [((), ()), ((3,), ()), ((1,), (3,)), ((3,), (3,))])
def test_gemm(layout, batches):
    m, n, k = 5, 6, 7
    a = make(*batches[0], *((m, k) if layout[0] == "r" else (k, m)), grad=True)
    b = make(*batches[1], *((k, n) if layout[1] == "r" else (n, k)), grad=True)
    bias = make(n, grad=True)

    def theirs(a, b, bias):
        c = (a if layout[0] == "r" else a.mT) @ (b if layout[1] == "r" else b.mT) + bias
        return c if layout[2] == "r" else c.mT

    assert_gradients(lambda a, b, bias: OPS.gemm(a, b, layout, bias, ""), theirs, a, b, bias)


CONVS = {
    "1d": ((2, 6, 15), (8, 3, 4), ([2], [3], [3], [2], 2)),
    "2d": ((2, 6, 9, 8), (4, 6, 3, 3), ([2, 1], [1, 2], [1, 2], [1, 1], 1)),
    "depthwise": ((2, 8, 7, 7), (8, 1, 3, 3), ([1, 1], [1, 1], [1, 1], [1, 1], 8)),
    "pointwise": ((2, 16, 5, 5), (8, 16, 1, 1), ([1, 1], [0, 0], [0, 0], [1, 1], 1)),
    "3d": ((1, 4, 5, 6, 4), (6, 2, 3, 2, 2), ([1, 2, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1], 2)),
}


def torch_conv(dims, geometry):
    stride, before, _after, dilation, groups = geometry
    function = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    return lambda x, w, bias=None: function(x, w, bias, stride, before, dilation, groups)


# torch has no channels-last format for one dimension.
@pytest.mark.parametrize("case, last", [(case, last) for case in CONVS for last in ("none", "x", "w", "both")
                                        if case != "1d" or last == "none"])
def test_conv(case, last):
    shape, filters, geometry = CONVS[case]
    dims = len(shape) - 2
    form = {2: torch.channels_last, 3: torch.channels_last_3d}.get(dims)
    x, w, bias = make(*shape), make(*filters), make(filters[0], grad=True)
    x = x.contiguous(memory_format=form) if last in ("x", "both") else x
    w = w.contiguous(memory_format=form) if last in ("w", "both") else w
    x.requires_grad_(), w.requires_grad_()
    theirs = torch_conv(dims, geometry)
    assert_gradients(lambda x, w, bias: OPS.conv(x, w, bias, None, *geometry, ""), theirs, x, w, bias)
    have, want = OPS.conv(x, w, bias, None, *geometry, ""), theirs(x, w, bias)
    assert (have.shape, have.stride()) == (want.shape, want.stride())
    dy = torch.ones_like(want)
    for ours, torchs in zip(torch.autograd.grad(have, (x, w), dy), torch.autograd.grad(want, (x, w), dy)):
        assert ours.is_contiguous() == torchs.is_contiguous()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_types(dtype):
    x, w, bias = make(2, 8, 6, 6, dtype=dtype), make(6, 4, 3, 3, dtype=dtype), make(6, dtype=dtype)
    geometry = ([1, 1], [1, 1], [1, 1], [1, 1], 2)
    assert_close(OPS.conv(x, w, bias, None, *geometry, "relu"),
                 F.relu(F.conv2d(x.double(), w.double(), bias.double(), padding=1, groups=2)))


def test_epilogues():
    x, w, bias, d = make(2, 8, 6, 6), make(8, 8, 3, 3), make(8), make(2, 8, 6, 6)
    geometry = ([1, 1], [1, 1], [1, 1], [1, 1], 1)
    assert_close(OPS.conv(x, w, bias, d, *geometry, "add+relu"), F.relu(F.conv2d(x, w, bias, padding=1) + d))
    rows, weight, more = make(5, 8), make(8, 8), make(5, 8)
    assert_close(OPS.linear(rows, weight, bias, more, "gelu+mul"), F.gelu(F.linear(rows, weight, bias)) * more)


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_strides():
    w, bias = make(7, 8), make(7)
    rows = make(5, 12)
    for x in (rows[:, :8], rows[:, 2:10], make(8, 5).t(), make(1, 8).expand(5, 8), make(6, 5, 12)[..., :8],
              make(5, 6, 8).transpose(0, 1), make(5, 16)[:, ::2]):
        assert_close(OPS.linear(x, w, bias, None, ""), F.linear(x.double(), w.double(), bias.double()))
    x = make(5, 8)
    for weight in (make(8, 7).t(), make(7, 20)[:, 3:11], make(1, 8).expand(7, 8), make(14, 8)[::2]):
        assert_close(OPS.linear(x, weight, bias, None, ""), F.linear(x.double(), weight.double(), bias.double()))
    spread = make(14)[::2]
    assert_close(OPS.linear(x, w, spread, None, ""), F.linear(x.double(), w.double(), spread.double()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensors_that_begin_anywhere(dtype):
    def shifted(*shape):
        """One element behind an aligned place."""
        size = torch.Size(shape).numel()
        return make(size + 1, dtype=dtype)[1:].view(shape)

    x, w, bias = shifted(5, 8), shifted(8, 8), shifted(8)
    assert x.data_ptr() % 16 == x.element_size()
    assert_close(OPS.linear(x, w, bias, None, ""), F.linear(x.double(), w.double(), bias.double()))
    image, filters = shifted(2, 6, 6, 8).permute(0, 3, 1, 2), shifted(8, 3, 3, 8).permute(0, 3, 1, 2)
    have = OPS.conv(image, filters, bias, None, [1, 1], [1, 1], [1, 1], [1, 1], 1, "")
    assert_close(have, F.conv2d(image.double(), filters.double(), bias.double(), padding=1))
    aligned = OPS.conv(image.clone(), filters.clone(), bias.clone(), None, [1, 1], [1, 1], [1, 1], [1, 1], 1, "")
    assert_close(aligned, have)


def cases_of_every_op():
    x, w, bias = make(2, 4, 7, 8), make(6, 2, 3, 3), make(6)
    for form in (torch.contiguous_format, torch.channels_last):
        x, w = x.contiguous(memory_format=form), w.contiguous(memory_format=form)
        dy = OPS.conv(x, w, None, None, *GEOMETRY, "")
        yield "conv", (x, w, bias, torch.ones_like(dy), *GEOMETRY, "add+relu")
        yield "conv_backward_data", (dy, w, make(4), [7, 8], *GEOMETRY, "relu")
        yield "conv_backward_weight", (x, dy, [3, 3], *GEOMETRY)
    yield "conv", (make(2, 4, 9), make(6, 2, 3), None, None, [1], [0], [1], [2], 2, "")
    yield "conv", (make(2, 3, 1, 1), make(5, 3, 1, 1), None, None, [1, 1], [0, 0], [0, 0], [1, 1], 1, "")
    yield "conv", (make(2, 3, 4, 4), make(1, 3, 1, 1), None, None, [1, 1], [0, 0], [0, 0], [1, 1], 1, "")
    yield "gemm", (make(3, 4, 5), make(6, 5), "rcc", bias, "gelu")
    yield "linear", (make(3, 4, 5), make(6, 5), bias, make(3, 4, 6), "add")


def test_results_have_the_form_that_python_and_fake_kernels_give_them():
    for name, arguments in cases_of_every_op():
        op = getattr(OPS, name)
        have, python = op(*arguments), _ops.KERNELS[name](*arguments)
        assert_close(have, python.double())
        fake = op(*(x.to("meta") if isinstance(x, torch.Tensor) else x for x in arguments))
        assert_same_form(have, python)
        assert (have.shape, have.stride(), have.dtype) == (fake.shape, fake.stride(), fake.dtype)


def test_nothing_to_compute():
    """Empty batches, and sums of nothing, which still have an epilogue; as the Python ops do."""
    bias, unit = make(6), ([1, 1], [0, 0], [0, 0], [1, 1])
    cases = [("linear", (make(0, 5), make(6, 5), bias, None, "")), ("linear", (make(4, 0), make(6, 0), bias, None, "relu")),
             ("linear", (make(4, 5), make(0, 5), make(0), None, "")), ("linear", (make(4, 0), make(6, 0), None, make(4, 6), "add")),
             ("gemm", (make(2, 3, 0), make(6, 0), "rcc", bias, "tanh")), ("gemm", (make(0, 3, 4), make(6, 4), "rcr", None, "")),
             ("conv", (make(0, 4, 5, 5), make(6, 4, 3, 3), bias, None, *unit, 1, "")),
             ("conv", (make(2, 0, 5, 5), make(6, 0, 3, 3), bias, None, *unit, 1, "relu")),
             ("conv_backward_data", (make(0, 6, 3, 3), make(6, 4, 3, 3), None, [5, 5], *unit, 1, "")),
             ("conv_backward_weight", (make(0, 4, 5, 5), make(0, 6, 3, 3), [3, 3], *unit, 1))]
    for name, arguments in cases:
        have, want = getattr(OPS, name)(*arguments), _ops.KERNELS[name](*arguments)
        assert_close(have, want.double())
        assert_same_form(have, want)
    x, w = make(0, 4, 5, 5, grad=True), make(6, 4, 3, 3, grad=True)
    OPS.conv(x, w, None, None, *unit, 1, "").sum().backward()
    assert x.grad.shape == x.shape and w.grad.abs().sum() == 0


def test_a_result_may_be_changed_in_place():
    x, w = make(2, 3, 5, 5), make(4, 3, 3, 3, grad=True)
    y = tt.conv2d(x, w).relu_()
    y.sum().backward()
    with torch.no_grad():
        z = tt.conv2d(x, w)
    z.requires_grad_()
    assert z.mul(2).relu_().sum().requires_grad and w.grad is not None


# ---- calls -----------------------------------------------------------------------------------------------------------


def test_the_short_way_says_the_same():
    x, w, bias = make(2, 4, 7, 8), make(6, 2, 3, 3), make(6)
    options = {"stride": (2, 1), "padding": 1, "dilation": 1, "groups": 2}
    first = tt.conv2d(x, w, bias, **options)  # works the geometry out
    assert any(key[1:] == ((2, 1), 1, 1, 2) for key in _quick._geometries)
    assert torch.equal(tt.conv2d(x, w, bias, **options), first)
    assert_close(first, F.conv2d(x, w, bias, **options))
    assert_close(tt.conv2d(x, w, bias, stride=[2, 1], padding=[1, 1], groups=2), first.double())  # lists are no keys
    rows, weight = make(3, 8), make(5, 8)
    assert torch.equal(tt.linear(rows, weight), OPS.linear(rows, weight, None, None, ""))


def test_the_short_way_is_for_plain_calls(monkeypatch):
    def never(*_):
        raise AssertionError("the short way was taken")

    monkeypatch.setattr(_quick, "_linear", never)
    x, w = make(4, 8), make(5, 8)
    with pytest.raises(AssertionError):
        tt.linear(x, w)
    want = F.linear(x, w)
    with _choice.choosing(_choice.Choice("first-fit")):
        assert_close(tt.linear(x, w), want)
    assert_close(torch.func.vmap(lambda x: tt.linear(x, w))(x), want)
    assert_close(torch.func.jvp(lambda x: tt.linear(x, w), (x,), (x,))[1], want)
    assert_close(torch.func.grad(lambda w: tt.linear(x, w).sum())(w), x.sum(0).expand(5, 8))


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore::torch.jit.TracerWarning")
def test_traces_keep_no_numbers_of_this_process():
    """Those of the short way mean other geometries in the process that loads a trace."""
    x, w = make(2, 4, 7, 8), make(6, 4, 3, 3)
    want = tt.conv2d(x, w, stride=2)  # works the geometry out
    traced = torch.jit.trace(lambda x, w: tt.linear(tt.conv2d(x, w, stride=2), x[0, 0, :3, :3]), (x, w))
    assert_close(traced(x, w), F.linear(want, x[0, 0, :3, :3]))
    used = {node.kind() for node in traced.inlined_graph.nodes() if node.kind().startswith("tilewise::")}
    assert used == {"tilewise::conv", "tilewise::linear"}


def test_the_short_way_casts_as_autocast_does():
    x, w, bias = make(2, 4, 5, 5), make(6, 4, 3, 3, grad=True), make(6)
    tt.conv2d(x, w, bias)  # works the geometry out
    with torch.autocast(DEVICE.split(":")[0], dtype=torch.bfloat16):
        y, one, rows = tt.conv2d(x, w, bias), tt.conv2d(x[0], w, bias), tt.linear(x, w[:, 0, 0].repeat(1, 2)[:, :5])
        assert_close(y, F.conv2d(x, w, bias))
        with torch.autocast(DEVICE.split(":")[0], enabled=False):
            assert tt.conv2d(x, w, bias).dtype == torch.float32
    assert y.dtype == one.dtype == rows.dtype == torch.bfloat16
    assert torch.equal(one, y[0])
    y.float().sum().backward()
    want, = torch.autograd.grad(F.conv2d(x, w, bias).sum(), w)
    assert w.grad.dtype == torch.float32 and (w.grad - want).norm() <= 1e-2 * want.norm()


def test_a_layer_leaves_other_tensors_to_torch():
    layer = torch.nn.Linear(8, 5, bias=False).to(DEVICE)
    tt.replace(layer)
    x = make(4, 8)
    assert torch.equal(layer(x), OPS.linear(x, layer.weight, None, None, ""))
    assert_close(layer(x.to_sparse()), F.linear(x, layer.weight))
    nested = torch.nested.nested_tensor([x, x[:2]])
    for have, want in zip(layer(nested).unbind(), F.linear(nested, layer.weight).unbind()):
        assert_close(have, want)
    assert layer.double()(x.double()).dtype == torch.float64


def test_plans_are_forgotten_for_kernels_to_be_chosen_anew():
    x, w = make(3, 8), make(5, 8)
    OPS.linear(x, w, None, None, "")
    assert _cpp.plan_count() > 0
    _cpp.forget_plans()
    assert _cpp.plan_count() == 0
    assert_close(OPS.linear(x, w, None, None, ""), F.linear(x, w))


def test_plans_are_kept_and_bounded():
    x, w = make(3, 8), make(5, 8)
    OPS.linear(x, w, None, None, "")
    count = _cpp.plan_count()
    OPS.linear(x, w, None, None, "")
    assert _cpp.plan_count() == count
    OPS.linear(x[:2], w, None, None, "")
    assert _cpp.plan_count() == count + 1
    most, rows = 4096, make(4200, 1)
    for size in range(1, most + 100):
        y = OPS.linear(rows[:size], w[:1, :1], None, None, "")
        assert _cpp.plan_count() <= most
    assert _cpp.plan_count() < most
    assert_close(y, F.linear(rows[:size], w[:1, :1]))
    assert_close(OPS.linear(x, w, None, None, ""), F.linear(x, w))


def test_threads():
    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for i in range(40):
            x, w = (torch.rand(2 + i % 5, 3 + seed % 3, 5, 5, generator=generator).to(DEVICE),
                    torch.rand(4, 3 + seed % 3, 3, 3, generator=generator).to(DEVICE).requires_grad_())
            y = tt.conv2d(x, w)
            y.sum().backward()
            assert_close(y, F.conv2d(x.double(), w.double()))
            assert_close(w.grad, torch.autograd.grad(F.conv2d(x.double(), w.double()).sum(), w)[0])
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU does not survive a fork")
def test_a_forked_child_begins_anew():
    x, w = make(3, 8), make(5, 8)
    want = tt.linear(x, w)
    assert _cpp.plan_count() > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads
        child = os.fork()
    if child == 0:
        fresh = _cpp.plan_count() == 0
        os._exit(0 if fresh and torch.equal(tt.linear(x, w), want) and _cpp.plan_count() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(tt.linear(x, w), want)


# ---- tracing ---------------------------------------------------------------------------------------------------------


def test_torchs_own_checks():
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic", "test_autograd_registration")
    x, w, bias = make(2, 4, 7, 8, grad=True), make(6, 2, 3, 3, grad=True), make(6, grad=True)
    torch.library.opcheck(OPS.conv, (x, w, bias, None, *GEOMETRY, ""), test_utils=tests)
    dy = OPS.conv(x, w, None, None, *GEOMETRY, "").detach().requires_grad_()
    torch.library.opcheck(OPS.conv_backward_data, (dy, w, make(4, grad=True), [7, 8], *GEOMETRY, ""), test_utils=tests)
    torch.library.opcheck(OPS.conv_backward_weight, (x, dy, [3, 3], *GEOMETRY), test_utils=tests)
    a, b = make(3, 4, 5, grad=True), make(6, 5, grad=True)
    torch.library.opcheck(OPS.gemm, (a, b, "rcr", bias, ""), test_utils=tests)
    torch.library.opcheck(OPS.linear, (a, b, bias, None, ""), test_utils=tests)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.last = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Linear(8, 5)

    def forward(self, x):
        y = F.relu(tt.conv2d(x, self.conv.weight, self.conv.bias, padding=1))
        return tt.linear(y.mean((2, 3)), self.last.weight, self.last.bias)


def gradients(model, x):
    model.zero_grad()
    model(x).pow(2).sum().backward()
    return [value.grad.clone() for value in model.parameters()]


def test_compile_and_export():
    model, x, other = Net().to(DEVICE), make(2, 3, 8, 8), make(3, 3, 10, 9)
    want = gradients(model, x)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for have, wanted in zip(gradients(compiled, x), want):
        assert_close(have, wanted)
    assert_close(compiled(other), model(other))
    exported = torch.export.export(model, (x,))
    assert {str(node.target) for node in exported.graph.nodes} >= {"tilewise.conv.default", "tilewise.linear.default"}
    assert_close(exported.module()(x), model(x))


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, error, message", [
    (lambda: OPS.linear(make(2, 3).double(), make(4, 3).double(), None, None, ""), TypeError, "Double is not supported.*float32"),
    (lambda: OPS.linear(make(2, 3), make(4, 3).half(), None, None, ""), TypeError, "weight: it is of Half, but x is of Float"),
    (lambda: OPS.linear(make(2, 3), make(4, 5), None, None, ""), ValueError, r"x \[2, 3\] and weight \[4, 5\] do not match"),
    (lambda: OPS.linear(make(2, 3), make(4, 3), make(5), None, ""), ValueError, r"bias: shape \[5\], need \(4\)"),
    (lambda: OPS.linear(make(2, 3), make(4, 3), None, make(2, 4), "relu"), ValueError, "'relu' takes 0 tensors d, 1 given"),
    (lambda: OPS.linear(make(2, 3), make(4, 3), None, None, "add"), ValueError, "'add' takes 1 tensors d, 0 given"),
    (lambda: OPS.linear(make(2, 3), make(4, 3), None, make(2, 4), "add+add"), ValueError, r"'add\+add' takes 2 tensors d, 1 given"),
    (lambda: OPS.linear(make(2, 3), make(4, 3), None, make(2, 3), "add"), ValueError, r"d: shape \[2, 3\], need the output's"),
    (lambda: OPS.linear(make(2, 3), make(4, 3), None, None, 'relu","beta":"1'), ValueError, "need words such as relu"),
    (lambda: OPS.linear(make(2, 3), make(4, 3), None, None, "selu"), RuntimeError, "selu"),
    (lambda: OPS.gemm(make(2, 3), make(4, 3), "rcx", None, ""), ValueError, "layout: 'rcx'"),
    (lambda: OPS.gemm(make(2, 3), make(4, 5), "rcr", None, ""), ValueError, "a has k=3, b has k=5"),
    (lambda: OPS.gemm(make(2, 2, 3), make(3, 4, 3), "rcr", None, ""), ValueError, "a has a batch of 2, b of 3"),
    (lambda: OPS.conv(make(1, 4, 5, 5), make(4, 3, 3, 3), None, None, *GEOMETRY, ""), ValueError, "x has 4 channels"),
    (lambda: OPS.conv(make(1, 4, 5, 5), make(4, 2, 3), None, None, *GEOMETRY, ""), ValueError, "need the same, 3 to 5"),
    (lambda: OPS.conv(make(1, 4, 5, 5), make(4, 2, 3, 3), None, None, [1], *GEOMETRY[1:], ""), ValueError, "stride: .* need 2"),
    (lambda: OPS.conv(make(1, 4, 5, 5), make(4, 2, 9, 9), None, None, *GEOMETRY, ""), RuntimeError, "smaller than the filter"),
    (lambda: OPS.conv(make(1, 4, 2, 5), make(4, 2, 3, 3), None, None, [2, 1], [0, 0], [0, 0], [1, 1], 2, ""), RuntimeError,
     "smaller than the filter"),
    (lambda: OPS.conv_backward_data(make(1, 4, 6, 6), make(4, 4, 3, 3), None, [30, 30], [1, 1], [0, 0], [0, 0], [3, 3], 1, ""), ValueError,
     r"dy: sizes \[6, 6\]; inputs of \[30, 30\] with filters of \[3, 3\] need \[24, 24\]"),
    (lambda: OPS.conv_backward_weight(make(1, 4, 9, 9), make(1, 4, 5, 5), [3, 3], [1, 1], [0, 0], [0, 0], [1, 1], 1), ValueError,
     r"dy: sizes \[5, 5\]; .* need \[7, 7\]"),
    (lambda: OPS.linear(make(2, 3).to_sparse(), make(4, 3), None, None, ""), RuntimeError, "sparse"),
    (lambda: tt.linear(make(2, 3).double(), make(4, 3).double()), TypeError, "not supported"),
])
def test_wrong_operands(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_negated_view_is_resolved():
    x, w = make(4, 8), make(5, 8)
    assert_close(OPS.linear(torch._neg_view(x), w, None, None, ""), F.linear(-x, w))


def test_a_tangent_is_never_lost():
    x, w = make(4, 8), make(5, 8)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        for y in (OPS.linear(dual, w, None, None, ""), OPS.linear(dual, w.clone().requires_grad_(), None, None, ""),
                  tt.linear(dual, w)):
            assert_close(torch.autograd.forward_ad.unpack_dual(y).tangent, F.linear(torch.ones_like(x), w))
        image, filters = make(1, 4, 5, 5), make(6, 2, 3, 3)
        dual = torch.autograd.forward_ad.make_dual(filters, torch.ones_like(filters))
        for y in (OPS.conv(image, dual, None, None, *GEOMETRY, ""),
                  OPS.conv_backward_data(make(1, 6, 4, 2), dual, None, [5, 5], [1, 1], *GEOMETRY[1:], "")):
            assert torch.autograd.forward_ad.unpack_dual(y).tangent is not None


def test_transforms_refuse_the_ops_themselves():
    x, w = make(4, 8), make(5, 8)
    with pytest.raises(NotImplementedError, match="torch.ops.tilewise.linear is not for torch.func"):
        torch.func.grad(lambda x: OPS.linear(x, w, None, None, "").sum())(x)


def test_a_fused_activation_has_no_gradient():
    x, w = make(4, 8, grad=True), make(5, 8)
    y = OPS.linear(x, w, None, None, "relu")
    with pytest.raises(RuntimeError, match="fused activation 'relu' has no gradient"):
        y.sum().backward()


def test_subclasses_decide_for_themselves():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return "loud"

    assert OPS.linear(make(4, 8).as_subclass(Loud), make(5, 8), None, None, "") == "loud"
