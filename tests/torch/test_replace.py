# SPDX-License-Identifier: MIT
"""replace and restore: which layers, what the report says, how kernels are chosen, subclasses, parametrizations, shared
layers.
"""
import copy
import pickle

import pytest
import tilewise
import tilewise.torch as tt
import torch
import torch.nn.functional as F
from against_torch import DEVICE, assert_close, gradients, make
from torch import nn
from torch.nn.utils import fusion, parametrizations, parametrize, prune


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.middle = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU(),
                                    nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"))
        self.shift = nn.Parameter(torch.zeros(5))
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        return self.last(F.relu_(self.middle(F.relu(self.norm(self.first(x))))).mean((2, 3))) + self.shift


NAMES = ["first", "middle.0", "middle.2", "last"]


@pytest.fixture
def model(convolutions):
    return Net().to(DEVICE)


@pytest.fixture
def x():
    return make(2, 3, 8, 8)


def test_a_models_layers(model, x):
    want, wanted = model(x), gradients(model, x)
    parameters = {name: (value, value.stride(), value.clone()) for name, value in model.named_parameters()}
    report = tt.replace(model)
    assert report.model is model
    assert report.replaced == {"first": "Conv2d", "middle.0": "Conv2d", "middle.2": "Conv2d", "last": "Linear"}
    assert report.kept == {"": "Net is no layer that tilewise computes", "norm": "BatchNorm2d is no layer that tilewise computes"}
    assert str(report).splitlines()[0] == "4 layers replaced, 2 kept" and "  norm: kept, BatchNorm2d is" in str(report)
    assert isinstance(model.first, tt.Conv2d) and isinstance(model.first, nn.Conv2d)
    for name, value in model.named_parameters():
        same, strides, values = parameters[name]
        assert value is same and value.stride() == strides and torch.equal(value, values)
    assert_close(model(x), want)
    for name, gradient in gradients(model, x).items():
        assert_close(gradient, wanted[name])
    assert tt.replace(model).replaced == report.replaced, "the second time nothing changes"


def test_a_printed_model_shows_what_was_replaced(model):
    tt.replace(model, strategy="rules", only="first")
    lines = str(model).splitlines()
    assert "  (first): tilewise.Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), strategy=rules)" in lines
    assert "  (last): Linear(in_features=8, out_features=5, bias=True)" in lines


def test_restore(model, x):
    before, text, keys = {name: type(layer) for name, layer in model.named_modules()}, str(model), set(vars(model.first))
    want = model.eval()(x)
    tt.replace(model, strategy="rules")
    assert tt.restore(model) == NAMES
    assert {name: type(layer) for name, layer in model.named_modules()} == before and str(model) == text
    assert set(vars(model.first)) == keys and torch.equal(model(x), want)
    assert tt.restore(model) == []


@pytest.mark.parametrize("only, names", [
    ("last", ["last"]), ("middle", ["middle.0", "middle.2"]), (["first", "middle.0"], ["first", "middle.0"]),
    (nn.Linear, ["last"]), ((nn.Linear, "first"), ["first", "last"]), (nn.Conv2d, NAMES[:3]), ([], []),
    (lambda name, layer: getattr(layer, "groups", 0) == 8, ["middle.0"])])
def test_only_some_layers(model, only, names):
    report = tt.replace(model, only=only)
    assert list(report.replaced) == names
    assert all(report.kept[name] == "not asked for" for name in NAMES if name not in names)


@pytest.mark.parametrize("options, error, message", [
    ({"only": "frist"}, ValueError, "only: the model has no layer 'frist'; near are first"),
    ({"only": [3]}, TypeError, "only: 3; need names"),
    ({"kernels": {"frist": "x"}}, ValueError, "kernels: the model has no layer 'frist'"),
    ({"kernels": {"first": "no_kernel"}}, tilewise.TilewiseError, "no_kernel"),
    ({"kernels": {"norm": None}}, ValueError, "kernels: 'norm' is not replaced: BatchNorm2d"),
    ({"kernels": {"last": "first"}, "only": "first"}, ValueError, "kernels: 'last' is not replaced: not asked for"),
])
def test_wrong_arguments(model, options, error, message):
    kernels = options.get("kernels", {})
    name = tilewise.select("gemm:m=2,n=5,k=8,dtype=fp32").kernel
    options = {**options, "kernels": {layer: name if given in (None, "first") else given for layer, given in kernels.items()}}
    with pytest.raises(error, match=message):
        tt.replace(model, **options)
    assert tt.restore(model) == [], "nothing was changed"


def test_a_kernel_of_another_operation(model):
    name = tilewise.select("gemm:m=2,n=5,k=8,dtype=fp32").kernel
    with pytest.raises(ValueError, match="kernels: 'first' is a Conv2d, which needs .*conv_fwd.*, not the gemm kernel"):
        tt.replace(model, kernels={"first": name})


def test_kernels_by_name_and_strategies(model, x, monkeypatch):
    wanted = {op: tilewise.prepare(problem, device=DEVICE).kernel for op, problem in (
        ("conv_fwd", "conv_fwd:n=2,c=3,k=8,in=8x8,filter=3x3,pad=1x1,dtype=fp32"),
        ("conv_bwd_weight", "conv_bwd_weight:n=2,c=3,k=8,in=8x8,filter=3x3,pad=1x1,dtype=fp32"))}
    want, wanted_gradients = model(x), gradients(model, x)
    tt.replace(model, strategy="first-fit", kernels={"first": list(wanted.values())})
    seen = []
    from tilewise import _entry
    prepare = _entry.prepare_entry

    def watch(key, call, fields, strategy, kernel, *rest):
        seen.append((fields["op"], fields.get("c"), strategy, kernel))
        return prepare(key, call, fields, strategy, kernel, *rest)

    from tilewise import _conv, _gemm
    monkeypatch.setattr(_conv, "prepare_entry", watch)
    monkeypatch.setattr(_gemm, "prepare_entry", watch)
    assert_close(model(x), want)
    for name, gradient in gradients(model, x).items():
        assert_close(gradient, wanted_gradients[name])
    assert ("conv_fwd", 3, None, wanted["conv_fwd"]) in seen and ("conv_bwd_weight", 3, None, wanted["conv_bwd_weight"]) in seen
    assert ("conv_fwd", 8, "first-fit", None) in seen and ("conv_bwd_data", 8, "first-fit", None) in seen
    assert ("gemm", None, "first-fit", None) in seen
    other = pickle.loads(pickle.dumps(model))
    assert other.first.tilewise_choice == model.first.tilewise_choice != model.last.tilewise_choice


@pytest.mark.compiles
def test_measured_kernels(x):
    theirs = nn.Conv2d(3, 4, 3).to(DEVICE)
    ours = copy.deepcopy(theirs)
    tt.replace(ours, strategy="measure")
    with torch.no_grad():
        assert_close(ours(x), theirs(x))


class Plain(nn.Conv2d):
    """With more to say, but nothing else to compute."""

    def __init__(self, *args):
        super().__init__(*args)
        self.note = "mine"

    def extra_repr(self):
        return "plain, " + super().extra_repr()


class Scaled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


class Standardized(nn.Conv2d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, weight - weight.mean((1, 2, 3), keepdim=True), bias)


def test_subclasses(x):
    model = nn.Sequential(Plain(3, 4, 3), Standardized(4, 4, 3), nn.Flatten(), Scaled(64, 5), nn.Linear(5, 5).double()).to(DEVICE)
    with torch.no_grad():
        want = model[:4](x)
    report = tt.replace(model)
    assert report.replaced == {"0": "Plain"}
    assert report.kept["1"] == "Standardized is a subclass of Conv2d with a forward of its own"
    assert report.kept["3"] == "Scaled is a subclass of Linear with a forward of its own"
    assert report.kept["4"].startswith("its weights are of torch.float64; need one of torch.float32")
    assert isinstance(model[0], Plain) and isinstance(model[0], tt.Conv2d)
    assert str(model[0]) == "tilewise.Plain(plain, 3, 4, kernel_size=(3, 3), stride=(1, 1))"
    assert_close(model[:4](x), want)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(other[0]) is type(model[0]) and other[0].note == "mine"
        assert torch.equal(other[:4](x), model[:4](x))
    assert tt.restore(model) == ["0"] and type(model[0]) is Plain


def test_a_forward_that_was_set_on_a_layer(x):
    model = nn.Conv2d(3, 4, 3).to(DEVICE)
    model.forward = lambda x: x * 2
    assert tt.replace(model).kept == {"": "its forward was set on the layer itself"}


def test_attention_computes_with_its_layers_weights_itself():
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    report = tt.replace(model)
    assert list(report.replaced) == ["linear1", "linear2"]
    assert report.kept["self_attn.out_proj"].startswith("MultiheadAttention reads its weights")
    assert "norm1" in report.kept and "self_attn" in report.kept


def test_shared_layers_and_weights(x):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Conv2d(3, 3, 3, padding=1)
            self.again = self.one
            self.other = nn.Conv2d(3, 3, 3, padding=1)
            self.other.weight = self.one.weight

        def forward(self, x):
            return self.other(self.again(self.one(x))).mean((2, 3))

    model = Shared().to(DEVICE)
    want = gradients(model, x)
    report = tt.replace(model)
    assert list(report.replaced) == ["one", "again", "other"] and model.one is model.again
    assert model.other.weight is model.one.weight
    for name, gradient in gradients(model, x).items():
        assert_close(gradient, want[name])


def test_frozen_layers(model, x):
    model.first.requires_grad_(False)
    model.middle.requires_grad_(False)
    want = model(x)
    tt.replace(model)
    assert_close(model(x), want)
    model(x).sum().backward()
    assert model.first.weight.grad is None and model.last.weight.grad is not None


NORMS = {"weight_norm": parametrizations.weight_norm, "spectral_norm": parametrizations.spectral_norm,
         "orthogonal": lambda layer: parametrizations.orthogonal(layer, orthogonal_map="cayley"),
         "old weight_norm": nn.utils.weight_norm, "old spectral_norm": nn.utils.spectral_norm}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("before", [True, False])
def test_parametrized_weights(norm, before, x):
    theirs = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)).to(DEVICE).eval()
    ours = copy.deepcopy(theirs)
    if not before:
        tt.replace(ours)
    for model in (theirs, ours):
        torch.manual_seed(1)
        NORMS[norm](model[1])
    assert list(tt.replace(ours).replaced) == ["0", "1"]
    x = x.contiguous(memory_format=torch.channels_last)
    want, have = gradients(theirs, x), gradients(ours, x)
    assert list(have) == list(want)
    for name, gradient in have.items():
        assert_close(gradient, want[name])
    with torch.no_grad():  # weights are new ones in each call, at the same address perhaps
        for value in (*theirs.parameters(), *ours.parameters()):
            value.mul_(1.5)
        assert_close(ours(x), theirs(x))
        assert_close(ours(x), theirs(x))
    if parametrize.is_parametrized(ours[1]):
        parametrize.remove_parametrizations(ours[1], "weight")
        assert type(ours[1]) is tt.Conv2d
    else:
        (nn.utils.remove_weight_norm if "weight" in norm else nn.utils.remove_spectral_norm)(ours[1])
    with torch.no_grad():
        assert_close(ours(x), theirs(x))
    assert tt.restore(ours) == ["0", "1"]


def test_restore_of_a_parametrized_layer(x):
    model = nn.Sequential(parametrizations.weight_norm(nn.Conv2d(3, 4, 3))).to(DEVICE)
    want = model(x)
    tt.replace(model)
    assert tt.restore(model) == ["0"] and torch.equal(model(x), want)
    parametrize.remove_parametrizations(model[0], "weight")
    assert type(model[0]) is nn.Conv2d


def test_pruned_weights(model, x):
    other = copy.deepcopy(model.eval())
    tt.replace(model)
    for pruned in (model, other):
        for name in ("first", "last"):
            prune.l1_unstructured(getattr(pruned, name), "weight", amount=0.5)
    with torch.no_grad():
        assert_close(model(x), other(x))
        model.first.weight_orig.mul_(2)
        other.first.weight_orig.mul_(2)
        assert_close(model(x.contiguous(memory_format=torch.channels_last)), other(x))
    prune.remove(model.first, "weight")
    assert_close(model(x), other(x))


def test_fusion_with_batch_norm(model, x):
    tt.replace(model)
    model.eval()
    fused = fusion.fuse_conv_bn_eval(model.first, model.norm)
    assert type(fused) is tt.Conv2d
    assert_close(fused(x), model.norm(model.first(x)))


def test_hooks(model, x):
    seen = []
    model.first.register_forward_hook(lambda layer, given, result: result * 2)
    model.first.register_forward_pre_hook(lambda layer, given: (given[0] + 1,))
    model.last.register_full_backward_hook(lambda layer, given, result: seen.append(given[0].shape))
    want = model.eval()(x)
    tt.replace(model)
    assert_close(model(x), want)
    model(x).sum().backward()
    assert seen == [(2, 8)]
