# SPDX-License-Identifier: MIT
"""torch.func and forward-mode differentiation through tilewise.torch: grad, jvp, vmap and what is made of them, against
torch's own functions.
"""
import pytest
import tilewise.torch as tt
import torch
import torch.nn.functional as F
from against_torch import DEVICE, make
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils import _pytree

CASES = {
    "linear": (lambda on: on.linear, (3, 4, 8), (5, 8), 5),
    "conv": (lambda on: lambda x, w, b: on.conv2d(x, w, b, padding=1, groups=2), (3, 4, 5, 6), (6, 2, 3, 3), 6),
    "transposed": (lambda on: lambda x, w, b: on.conv_transpose2d(x, w, b, stride=2, groups=2), (3, 4, 4, 3), (4, 3, 3, 3), 6),
}
MAPPED = [(0, None, None), (1, 0, None), (None, 0, 0), (0, 1, 0), (0, None, 0), (None, None, 0)]


def check(have, want):
    """Trees of tensors that are the same but for rounding."""
    have, want = _pytree.tree_leaves(have), _pytree.tree_leaves(want)
    assert [x.shape for x in have] == [x.shape for x in want]
    for x, y in zip(have, want):
        assert (x - y).abs().max().item() <= 2e-5 * (y.abs().max().item() + 1)


@pytest.fixture(params=CASES)
def case(request, convolutions):
    """The same function of tilewise and of torch, and operands."""
    function, shape, filters, channels = CASES[request.param]
    return function(tt), function(F), (make(*shape), make(*filters), make(channels))


def loss(function):
    return lambda *operands: function(*operands).sin().sum()


def test_gradients(case):
    ours, theirs, operands = case
    check(grad(loss(ours), (0, 1, 2))(*operands), grad(loss(theirs), (0, 1, 2))(*operands))


def test_gradients_of_gradients(case):
    ours, theirs, (x, w, bias) = case

    def penalty(function):
        return lambda w: grad(loss(function))(x, w, bias).pow(2).sum()

    check(grad(penalty(ours))(w), grad(penalty(theirs))(w))


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1, 2)])
def test_forward_mode(case, which):
    ours, theirs, operands = case
    tangents = tuple(torch.rand_like(operands[i]) for i in which)

    def of(function):
        return lambda *given: function(*[given[which.index(i)] if i in which else x for i, x in enumerate(operands)])

    given = tuple(operands[i] for i in which)
    want = jvp(of(theirs), given, tangents)
    assert want[1].abs().max() > 0.1
    check(jvp(of(ours), given, tangents), want)
    with forward_ad.dual_level():
        dual = of(ours)(*[forward_ad.make_dual(x, t) for x, t in zip(given, tangents)])
        check(forward_ad.unpack_dual(dual).tangent, want[1])


def test_forward_mode_of_an_op():
    x, w, tangent = make(3, 8), make(5, 8), make(3, 8)
    with forward_ad.dual_level():
        y = torch.ops.tilewise.linear(forward_ad.make_dual(x, tangent), w, None, None, "")
        check(forward_ad.unpack_dual(y).tangent, F.linear(tangent, w))


def test_ops_refuse_transforms():
    x, w = make(3, 8), make(5, 8)
    with pytest.raises(NotImplementedError, match="torch.ops.tilewise.linear is not for torch.func; call tilewise.torch's"):
        grad(lambda x: torch.ops.tilewise.linear(x, w, None, None, "").sum())(x)


@pytest.mark.parametrize("dims", MAPPED)
def test_vmap(case, dims):
    ours, theirs, operands = case
    mapped = [x if dim is None else torch.stack([x, x + 1, x * 2], dim) for x, dim in zip(operands, dims)]
    check(vmap(ours, dims)(*mapped), vmap(theirs, dims)(*mapped))
    check(vmap(grad(loss(ours), (0, 1, 2)), dims)(*mapped), vmap(grad(loss(theirs), (0, 1, 2)), dims)(*mapped))
    twice = [vmap(vmap(on, dims), dims)(*[x if dim is None else torch.stack([x, x + 1], dim) for x, dim in zip(mapped, dims)])
             for on in (ours, theirs)]
    check(*twice)


@pytest.mark.parametrize("dims", [(0, None, None), (None, 0, None), (2, 1, None), (0, 0, 0), (None, None, 0)])
@pytest.mark.parametrize("shapes", [((4, 5), (3, 5)), ((2, 4, 5), (3, 5)), ((2, 4, 5), (2, 3, 5))])
@pytest.mark.parametrize("layout", ["rcr", "rcc"])
def test_vmap_of_products(dims, shapes, layout):
    operands = [make(*shapes[0]), make(*shapes[1]), make(3)]
    mapped = [x if dim is None else torch.stack([x, x + 1, x * 2], dim) for x, dim in zip(operands, dims)]

    def exact(a, b, bias):
        c = torch.relu(a @ b.mT + bias)
        return c if layout[2] == "r" else c.mT

    check(vmap(lambda a, b, bias: tt.gemm(a, b, layout=layout, bias=bias, activation="relu"), dims)(*mapped),
          vmap(exact, dims)(*mapped))


def test_jacobians(case):
    ours, theirs, (x, w, bias) = case
    check(jacrev(lambda w: ours(x, w, bias))(w), jacrev(lambda w: theirs(x, w, bias))(w))
    check(jacfwd(lambda bias: ours(x, w, bias))(bias), jacfwd(lambda bias: theirs(x, w, bias))(bias))
    check(hessian(loss(ours), 2)(x, w, bias), hessian(loss(theirs), 2)(x, w, bias))
    check(vjp(ours, x, w, bias)[1](ours(x, w, bias)), vjp(theirs, x, w, bias)[1](theirs(x, w, bias)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 6, 3, groups=3), nn.Linear(6, 4)

    def forward(self, x):
        return self.last(F.relu(self.conv(x)).mean((2, 3)))


def test_functional_calls_and_gradients_of_each_sample(convolutions):
    model = Net().to(DEVICE)
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    x = make(5, 3, 6, 6)

    def of_samples():
        one = grad(lambda parameters, x: functional_call(model, parameters, (x[None],)).pow(2).sum())
        return vmap(one, (None, 0))(parameters, x)

    want = of_samples()
    tt.replace(model)
    check(of_samples(), want)
    other = {name: value + 1 for name, value in parameters.items()}
    for _ in range(2):  # what is kept beside a layer belongs to its own parameters
        with torch.no_grad():
            model.eval()
            have = functional_call(model, other, (x.contiguous(memory_format=torch.channels_last),))
        changed = Net().to(DEVICE)
        changed.load_state_dict(other)
        check(have, changed(x).detach())


@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels-last"])
def test_layers_in_inference_are_mapped(convolutions, last):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3)).to(DEVICE).eval()
    x = make(5, 2, 3, 6, 6)
    if last:
        x = x.movedim(2, -1).contiguous().movedim(-1, 2)
    models = {name: torch.stack([value, value * 2]).detach() for name, value in model.named_parameters()}

    def of_images_and_models():
        return vmap(model)(x), vmap(lambda one: functional_call(model, one, (x[0],)))(models)

    want = of_images_and_models()
    tt.replace(model)
    check(of_images_and_models(), want)


def test_compiled_transforms(convolutions):
    x, w, bias = make(3, 4, 8), make(5, 8), make(5)
    for ours in (grad(loss(tt.linear)), vmap(grad(loss(tt.linear)), (0, None, None))):
        torch.compiler.reset()
        check(torch.compile(ours, backend="aot_eager")(x, w, bias), ours(x, w, bias))
