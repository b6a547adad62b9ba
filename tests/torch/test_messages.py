# SPDX-License-Identifier: MIT
"""Functions of tilewise.torch name an argument of the wrong kind, and what it needs."""
import numpy as np
import pytest
import tilewise.torch as tt
import torch
from torch import nn

import tilewise

X, W = torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)


@pytest.mark.parametrize("call, message", [
    (lambda: tt.conv2d(X, W, stride=1.5), "stride: 1.5 is not a whole number"),
    (lambda: tt.conv2d(X, W, padding=("1", 1)), "padding: '1' is not a whole number"),
    (lambda: tt.conv_transpose2d(X, W.transpose(0, 1), dilation=None), "dilation: None is not a whole number"),
    (lambda: tt.conv2d(X, W, groups=1.5), "groups: 1.5 is not a whole number"),
    (lambda: tt.conv_transpose2d(X, W.transpose(0, 1), groups="1"), "groups: '1' is not a whole number"),
    (lambda: tt.conv2d(X, W, activation=1), "activation: expected a word, got int"),
    (lambda: tt.linear(X, W[0, 0, :, :1].expand(3, 8), activation=["relu"]), "activation: expected a word, got list"),
    (lambda: tt.conv2d(X.numpy(), W), "x: expected a torch.Tensor, got ndarray"),
    (lambda: tt.conv_transpose2d(X, [1]), "weight: expected a torch.Tensor, got list"),
    (lambda: tt.conv2d(X, W, bias=0, dilation=[1]), "bias: expected a torch.Tensor, got int"),
    (lambda: tt.gemm(None, X), "a: expected a torch.Tensor, got NoneType"),
    (lambda: tt.replace(None), "replace: expected a torch.nn.Module, got NoneType"),
    (lambda: tt.restore(len), "restore: expected a torch.nn.Module"),
    (lambda: tt.problems(5, X), "expected a torch.nn.Module, got int"),
])
def test_an_argument_of_the_wrong_kind_is_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_whole_numbers_of_numpy():
    assert torch.equal(tt.conv2d(X, W, stride=np.int64(2), groups=np.int32(1)), tt.conv2d(X, W, stride=2))


@pytest.mark.parametrize("call", [lambda model: tt.replace(model, strategy="fastest"),
                                  lambda model: tt.optimize(model, torch.ones(2, 3), strategy="fastest", compiler="eager")])
def test_an_unknown_strategy_is_refused_at_once(call):
    model = nn.Linear(3, 4).eval()
    with pytest.raises(tilewise.UsageError, match="unknown strategy 'fastest'; one of: auto"):
        call(model)
    assert type(model) is nn.Linear
