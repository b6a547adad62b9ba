# SPDX-License-Identifier: MIT
"""Layers of tilewise.torch in CUDA graphs, and on several streams."""
import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import tilewise.torch as tt  # noqa: E402  only where torch is installed


@pytest.fixture
def models(gpu):
    """The same model replaced and as it was, and an input that makes layers keep their filters."""
    torch.manual_seed(7)
    theirs = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3)).cuda().eval()
    ours = copy.deepcopy(theirs)
    tt.replace(ours)
    x = torch.randn(2, 8, 8, 8, device="cuda").contiguous(memory_format=torch.channels_last)
    return ours, theirs.double(), x


def check(have, want):
    assert (have.double() - want).abs().max() <= 1e-5 * (want.abs().max() + 1)


@torch.no_grad()
def test_a_graph_sees_weights_that_change(models):
    ours, theirs, x = models
    ours(x)  # keeps filters, which a graph must not
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ours(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = ours(x)
    x.copy_(torch.randn_like(x))
    for value in (*ours.parameters(), *theirs.parameters()):
        value.mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    check(y, theirs(x.double()))
    check(ours(x), theirs(x.double()))


@torch.no_grad()
def test_filters_on_several_streams(models):
    ours, theirs, x = models
    torch.cuda.synchronize()
    for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            y = ours(x)
        stream.synchronize()
        check(y, theirs(x.double()))
