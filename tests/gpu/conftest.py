# SPDX-License-Identifier: MIT
"""Fixtures for the tests of torch tensors on a GPU. They skip, saying why, without torch or a GPU that it can use."""
import importlib.util
import math
import pathlib

import pytest


def why_not():
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    import torch
    return None if torch.cuda.is_available() else "torch sees no CUDA device"


def pytest_collection_modifyitems(items):
    reason = why_not()
    here = pathlib.Path(__file__).parent
    for item in items:
        if reason and item.path.is_relative_to(here):  # the hook sees the items of other folders, too
            item.add_marker(pytest.mark.skip(reason=reason))


class Gpu:
    """Tensors on the GPU with values that a test can judge, and the judge."""

    def __init__(self, seed):
        import torch
        self.torch = torch
        self.generator = torch.Generator(device="cuda").manual_seed(seed)

    def random(self, *shape, dtype):
        """Uniform in [-1, 1)."""
        return (self.torch.rand(*shape, device="cuda", generator=self.generator) * 2 - 1).to(dtype)

    def placed(self, x, offset=0, gap=0):
        """x with its rows `gap` elements apart, starting `offset` elements after an aligned address, among NaNs."""
        *lead, rows, columns = x.shape
        size = math.prod(lead) * rows * (columns + gap)
        memory = self.torch.full((offset + size,), math.nan, device="cuda", dtype=x.dtype)
        view = memory[offset:].view(*lead, rows, columns + gap)[..., :columns]
        view.copy_(x)
        return view

    def check(self, have, want, depth, more=0.0):
        """Against a result in float64: half a unit in the last place, and what a sum of `depth` products in fp32 may lose."""
        unit = {"float32": 2.0 ** -24, "float16": 2.0 ** -11, "bfloat16": 2.0 ** -8}[str(have.dtype).removeprefix("torch.")]
        have, want = have.double(), want.double()
        assert have.shape == want.shape
        assert not have.isnan().any(), "NaN, or never written"
        over = (have - want).abs() - (1.01 * unit * want.abs() + depth * 2.0 ** -21 + more)
        assert over.max().item() <= 0, f"off by {(have - want).abs().max().item():.3g} where {want.abs().max().item():.3g}"


@pytest.fixture
def gpu(request):
    return Gpu(seed=sum(request.node.name.encode()))
