# SPDX-License-Identifier: MIT
"""How the tests of tilewise.torch compare with torch: on the CPU, or on the device that TILEWISE_TEST_DEVICE names."""
import os

import torch

DEVICE = os.environ.get("TILEWISE_TEST_DEVICE", "cpu")
BOUND = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def make(*shape, dtype=torch.float32, grad=False):
    return (torch.rand(shape, device=DEVICE) * 2 - 1).to(dtype).requires_grad_(grad)


def to_channels_last(x):
    return x.detach().to(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)


def assert_close(have, want):
    assert have.shape == want.shape
    if have.numel() == 0:
        return
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


def gradients(model, x):
    model.zero_grad()
    model(x).pow(2).sum().backward()
    return {name: value.grad.clone() for name, value in model.named_parameters()}
