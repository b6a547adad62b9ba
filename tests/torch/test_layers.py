# SPDX-License-Identifier: MIT
"""Layers of tilewise: memory formats, filters kept beside them, types and devices, deferred initialisation."""
import copy
import gc
import re
import warnings
import weakref

import pytest
import tilewise.torch as tt
import torch
import torch.nn.functional as F
from against_torch import DEVICE, assert_close, compare, make, to_channels_last
from tilewise.torch import _packed
from torch import nn

LAYERS = {
    "Linear": (nn.Linear(8, 5), (3, 2, 8)),
    "Conv1d": (nn.Conv1d(4, 6, 3, padding=1, groups=2), (2, 4, 9)),
    "Conv2d": (nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), (2, 4, 7, 8)),
    "reflected": (nn.Conv2d(4, 6, (3, 2), padding="same", padding_mode="reflect"), (2, 4, 7, 8)),
    "circular": (nn.Conv1d(4, 6, 3, padding=2, padding_mode="circular", dilation=2), (2, 4, 9)),
    "Conv3d": (nn.Conv3d(4, 6, 2, groups=2), (2, 4, 4, 5, 4)),
    "ConvTranspose1d": (nn.ConvTranspose1d(4, 6, 4, stride=3, padding=1, output_padding=1), (2, 4, 5)),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, bias=False), (2, 4, 5, 4)),
    "ConvTranspose3d": (nn.ConvTranspose3d(4, 6, 2, stride=2), (1, 4, 3, 3, 3)),
}


def pair(name):
    """A layer of torch, the same one replaced, and an input."""
    theirs, shape = LAYERS[name]
    theirs = copy.deepcopy(theirs).to(DEVICE)
    ours = copy.deepcopy(theirs)
    assert list(tt.replace(ours).replaced) == [""]
    return ours, theirs, make(*shape)


@pytest.fixture(params=LAYERS)
def layer(request, convolutions):
    return pair(request.param)


def test_layers_compute_what_torchs_do(layer):
    ours, theirs, x = layer
    theirs = theirs.double()
    compare(ours, theirs, x.requires_grad_())
    for (name, have), want in zip(ours.named_parameters(), theirs.parameters()):
        assert_close(have.grad, want.grad)
        assert have.grad.stride() == have.stride(), name
    assert_close(ours(x[0]), theirs(x[0].double()))  # without a batch
    empty = ours(x[:0])
    assert empty.shape == theirs(x[:0].double()).shape
    ours.zero_grad()
    empty.sum().backward()
    assert all((value.grad == 0).all() for value in ours.parameters())


@pytest.mark.parametrize("name", [name for name, (_, shape) in LAYERS.items() if len(shape) > 3])
def test_layers_in_channels_last(convolutions, name):
    ours, theirs, x = pair(name)
    for weights_too in (False, True):
        if weights_too:
            form = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
            ours, theirs = ours.to(memory_format=form), theirs.to(memory_format=form)
        for image in (x, to_channels_last(x)):
            with torch.no_grad():
                have, want = ours(image), theirs(image)
            assert_close(have, want)
            if not isinstance(theirs, nn.ConvTranspose3d):  # torch's on the CPU is always contiguous
                assert have.stride() == want.stride()


def test_output_sizes_of_transposed_convolutions(convolutions):
    theirs = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1).to(DEVICE)
    ours = copy.deepcopy(theirs)
    tt.replace(ours)
    x = make(2, 4, 5, 5)
    assert_close(ours(x, output_size=[10, 9]), theirs(x, output_size=[10, 9]))
    with pytest.raises(ValueError, match="requested an output size"):
        ours(x, output_size=[20, 9])


def kept(layer):
    found = _packed._copies.get(layer)
    return None if found is None else found[1]


@pytest.fixture
def packing(convolutions):
    """A layer in inference, an input that makes it keep its filters, and what it should compute."""
    layer = nn.Conv2d(8, 6, 3).to(DEVICE).eval()
    tt.replace(layer)
    x = to_channels_last(make(2, 8, 6, 6))

    def check(is_kept=True):
        with torch.no_grad():
            assert_close(layer(x), F.conv2d(x.double(), layer.weight.double(), layer.bias.double()))
        assert (kept(layer) is not None) == is_kept

    check()
    return layer, x, check


def test_filters_are_kept_in_inference(packing):
    layer, x, check = packing
    first, strides = kept(layer), layer.weight.stride()
    check()
    assert kept(layer) is first and layer.weight.stride() == strides == (72, 9, 3, 1)
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert kept(copy.deepcopy(layer)) is None and kept(copy.copy(layer)) is None


def test_filters_follow_the_parameter(packing):
    layer, x, check = packing
    with torch.no_grad():
        layer.weight.mul_(2)
    check()
    layer.load_state_dict({name: value + 1 for name, value in layer.state_dict().items()})
    check()
    layer.weight.data = layer.weight.data * 3
    check()
    layer.weight = nn.Parameter(torch.randn_like(layer.weight))
    check()
    layer.load_state_dict({name: value + 1 for name, value in layer.state_dict().items()}, assign=True)
    check()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    layer(x).sum().backward()
    assert kept(layer) is None, "a gradient is recorded"
    optimizer.step()
    assert kept(layer) is None
    check()
    layer.state_dict()["weight"].mul_(2)
    check()
    layer.eval()  # also after changes that torch does not count
    assert kept(layer) is None
    check()


def test_filters_are_dropped_in_training(packing):
    layer, x, check = packing
    layer.train()
    assert kept(layer) is None
    check(is_kept=False)
    layer.eval()
    check()
    layer.to(torch.bfloat16)
    assert kept(layer) is None
    with torch.no_grad():
        assert layer(x.bfloat16()).dtype == torch.bfloat16 and kept(layer).dtype == torch.bfloat16


def test_filters_go_with_their_layer(convolutions):
    layer = nn.Conv2d(8, 6, 3).to(DEVICE).eval()
    tt.replace(layer)
    with torch.no_grad():
        layer(to_channels_last(make(2, 8, 6, 6)))
    copied = weakref.ref(kept(layer))
    assert copied() is not None
    del layer
    gc.collect()
    assert copied() is None


def test_filters_kept_in_inference_mode_serve_gradients_of_the_input(convolutions):
    layer = nn.Conv2d(8, 6, 3).to(DEVICE).eval().requires_grad_(False)
    tt.replace(layer)
    x = to_channels_last(make(2, 8, 6, 6))
    with torch.inference_mode():
        layer(x)
    assert kept(layer) is not None
    compare(layer, lambda x: F.conv2d(x, layer.weight.double(), layer.bias.double()), x.requires_grad_())


def test_filters_that_are_not_kept(packing):
    layer, x, check = packing
    check()
    with torch.no_grad():
        layer(x.contiguous())
    assert layer(x).requires_grad and kept(layer) is None
    layer.requires_grad_(False)
    layer(x)
    assert kept(layer) is not None
    with torch.inference_mode():
        assert_close(layer(x), F.conv2d(x, layer.weight, layer.bias))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that traces are of the past
        traced = torch.jit.trace(layer, x)
        traced.weight.mul_(2)
        assert_close(traced(x), F.conv2d(x, layer.weight, layer.bias))
    pointwise = nn.Conv2d(8, 6, 1).to(DEVICE).eval().to(memory_format=torch.channels_last)
    tt.replace(pointwise)
    with torch.no_grad():
        pointwise(x)
    assert kept(pointwise) is None, "as it lies"


def test_autocast(convolutions):
    kind = DEVICE.split(":")[0]
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.ConvTranspose2d(8, 4, 2), nn.Flatten(), nn.LazyLinear(5)).to(DEVICE)
    x = make(2, 3, 6, 6)
    model(x)
    ours = copy.deepcopy(model)
    tt.replace(ours)
    results = []
    for on in (model, ours):
        for form in (torch.contiguous_format, torch.channels_last):
            on.zero_grad()
            with torch.autocast(kind, dtype=torch.bfloat16):
                y = on.train()(x.contiguous(memory_format=form))
                assert y.dtype == torch.bfloat16
                y.float().pow(2).sum().backward()
            with torch.no_grad(), torch.autocast(kind, dtype=torch.bfloat16):
                z = on.eval()(x.contiguous(memory_format=form))
            assert on.eval()(x).dtype == torch.float32
        results.append([y, z] + [value.grad for value in on.parameters()])
    for have, want in zip(*results[::-1]):
        assert have.dtype == want.dtype
        assert (have - want).norm() <= 0.03 * want.norm()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_what_tilewise_does_not_compute_is_left_to_torch(layer, dtype):
    ours, theirs, x = (given.to(dtype) for given in layer)
    assert torch.equal(ours(x), theirs(x))


def test_torch_says_what_is_wrong_with_what_is_no_tensor(layer):
    ours, theirs, _ = layer
    for given in (None, [1.0, 2.0]):
        with pytest.raises(TypeError) as want:
            theirs(given)
        with pytest.raises(TypeError, match=re.escape(str(want.value).splitlines()[0])):
            ours(given)


def test_types_must_agree():
    layer = nn.Linear(4, 4)
    tt.replace(layer)
    with pytest.raises(TypeError, match="x is of torch.bfloat16, weight of torch.float32"):
        layer(make(2, 4, dtype=torch.bfloat16))


def test_tensors_of_subclasses(convolutions):
    from torchvision import tv_tensors
    model = nn.Conv2d(3, 4, 3)
    x = tv_tensors.Image(torch.rand(3, 8, 8))
    want = model(x)
    tt.replace(model)
    have = model(x)
    assert type(have) is type(want)
    assert_close(have, want)


def test_meta_device(layer):
    ours, theirs, x = layer
    ours, theirs = copy.deepcopy(ours).to("meta"), copy.deepcopy(theirs).to("meta")
    have, want = ours(x.to("meta")), theirs(x.to("meta"))
    assert have.device.type == "meta" and have.shape == want.shape
    have.sum().backward()
    assert all(value.grad.shape == value.shape for value in ours.parameters())


def test_deferred_initialisation(convolutions):
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(64, 2))
    tt.replace(model)
    x = make(2, 3, 6, 6)
    assert model(x.to("meta")).shape == (2, 2)
    model.to_empty(device=DEVICE)
    other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(64, 2)).to(DEVICE)
    model.load_state_dict(other.state_dict())
    assert_close(model(x), other(x))
    layer = nn.utils.skip_init(tt.Conv2d, 3, 4, 3, device=DEVICE)
    layer.load_state_dict(other[0].state_dict())
    assert_close(layer(x), other[0](x))


def test_sizes_that_the_first_input_tells(convolutions):
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyConvTranspose2d(4, 3), nn.Flatten(), nn.LazyLinear(2)).to(DEVICE)
    report = tt.replace(model)
    assert list(report.replaced.values()) == ["LazyConv2d", "LazyConvTranspose2d", "LazyLinear"]
    x = make(2, 3, 6, 6)
    model(x)
    assert [type(model[i]) for i in (0, 1, 3)] == [tt.Conv2d, tt.ConvTranspose2d, tt.Linear]
    other = copy.deepcopy(model)
    assert tt.restore(other) == ["0", "1", "3"]
    assert_close(model(x), other(x))
    lazy = nn.LazyLinear(3)
    tt.replace(lazy)
    assert tt.restore(lazy) == [""] and type(lazy) is nn.LazyLinear
