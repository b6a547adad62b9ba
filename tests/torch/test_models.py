# SPDX-License-Identifier: MIT
"""Models of torchvision and transformers with random weights, replaced and as they are, both against float64: results,
gradients, an optimizer's step, in float32 and bfloat16, in both memory formats.
"""
import copy
import math

import pytest
import tilewise.torch as tt
import torch
import torchvision
from against_torch import DEVICE
from torch import nn

MODELS = ("resnet50", "resnext50_32x4d", "mobilenet_v2", "convnext_tiny", "efficientnet_b0", "regnet_y_1_6gf", "densenet121",
          "vit_b_16")
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def build(name):
    model = getattr(torchvision.models, name)(weights=None, **({"image_size": 64} if name.startswith("vit") else {}))
    for layer in model.modules():
        if isinstance(layer, (nn.Dropout, torchvision.ops.StochasticDepth)):
            layer.p = 0.0
    if name.startswith("vit"):  # zeros, so that nothing would depend on the rest
        nn.init.normal_(model.heads.head.weight, std=0.02)
    return model.to(DEVICE)


def run(model, x, train):
    """The result, and all gradients as one vector, in float64."""
    model.train(train)
    model.zero_grad()
    y = model(x)
    y.to(torch.promote_types(y.dtype, torch.float32)).pow(2).mean().backward()
    return y.detach().double(), torch.cat([value.grad.double().flatten() for value in model.parameters()])


def error(have, want):
    return ((have - want).norm() / want.norm()).item()


@pytest.fixture(scope="module", params=MODELS)
def model(request, convolutions):
    """A model, images, and its results and gradients in float64, in inference and in training."""
    torch.manual_seed(0)
    model, x = build(request.param), torch.randn(2, 3, 64, 64).to(DEVICE)
    exact = {train: run(copy.deepcopy(model).double(), x.double(), train) for train in (False, True)}
    return model, x, exact


ratios = []  # errors of bfloat16 in inference, ours to torch's, of the models so far


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_and_gradients(model, form, dtype):
    model, x, exact = model
    theirs = copy.deepcopy(model).to(DTYPES[dtype], memory_format=FORMATS[form])
    ours = copy.deepcopy(theirs)
    report = tt.replace(ours)
    assert not any(isinstance(layer, (nn.Conv2d, nn.Linear)) and name not in report.replaced and "out_proj" not in name
                   for name, layer in ours.named_modules())
    assert {value.stride() for value in ours.parameters()} == {value.stride() for value in theirs.parameters()}
    x = x.to(DTYPES[dtype], memory_format=FORMATS[form])
    # Where few values are normalized, as in training here, rounding errors grow by chance, torch's and ours.
    least = {False: {"float32": 1e-6, "bfloat16": 1e-3}[dtype], True: {"float32": 0.05, "bfloat16": 0.1}[dtype]}
    for train in (False, True):
        results = [run(on, x, train) for on in (theirs, ours)]
        assert results[0][0].stride() == results[1][0].stride()
        for which in (0, 1):
            base, have = (error(result[which], exact[train][which]) for result in results)
            assert have <= 2 * base + least[train], ("training" if train else "inference", ("result", "gradients")[which])
        if dtype == "bfloat16" and not train:
            ratios.append(error(results[1][0], exact[train][0]) / error(results[0][0], exact[train][0]))


def test_bfloat16_is_as_exact_as_torchs():
    """Over all models and formats, against float64; each of them is a sample of rounding errors."""
    if len(ratios) < 2 * len(MODELS):
        pytest.fail(f"{len(ratios)} ratios; this test needs those of all models before it")
    assert math.exp(sum(map(math.log, ratios)) / len(ratios)) <= 1.05
    assert max(ratios) <= 1.25


def test_a_step_of_an_optimizer(model):
    model, x, _ = model
    results = []
    for replaced in (False, True):
        on = copy.deepcopy(model).eval()  # gradients that rounding errors do not rule
        if replaced:
            tt.replace(on)
        optimizer = torch.optim.SGD(on.parameters(), lr=1e-3, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            on(x).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            results.append((on(x), torch.cat([value.detach().flatten() for value in on.parameters()])))
    assert error(results[1][0].double(), results[0][0].double()) <= 1e-4
    moved = (results[0][1] - torch.cat([value.detach().flatten() for value in model.parameters()])).norm()
    assert moved > 0 and (results[1][1] - results[0][1]).norm() <= 1e-2 * moved


def bert():
    from transformers import BertConfig, BertModel
    return BertModel(BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def llama():
    from transformers import LlamaConfig, LlamaModel
    return LlamaModel(LlamaConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                  num_key_value_heads=2, intermediate_size=128, max_position_embeddings=32))


@pytest.mark.parametrize("make_model", [bert, llama])
@pytest.mark.parametrize("dtype", DTYPES)
def test_language_models(make_model, dtype):
    torch.manual_seed(0)
    theirs = make_model().to(DEVICE).eval()
    words = torch.randint(0, 100, (2, 16), device=DEVICE)
    results = []
    for kind, replaced in ((torch.float64, False), (DTYPES[dtype], False), (DTYPES[dtype], True)):
        on = copy.deepcopy(theirs).to(kind)
        if replaced:
            report = tt.replace(on)
            assert "embed" in "".join(report.kept) and all(kind == "Linear" for kind in report.replaced.values())
        y = on(words).last_hidden_state
        y.pow(2).mean().backward()
        results.append((y.detach().double(), torch.cat([value.grad.double().flatten() for value in on.parameters()
                                                        if value.grad is not None])))
    for which in (0, 1):
        base, have = (error(result[which], results[0][which]) for result in results[1:])
        assert have <= 1.25 * base + {"float32": 1e-6, "bfloat16": 1e-3}[dtype]
