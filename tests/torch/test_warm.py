# SPDX-License-Identifier: MIT
"""Which problems a model's layers run, and kernels that are compiled and measured ahead of its first call."""
import os
import subprocess
import sys
import threading

import pytest
import torch
from against_torch import DEVICE
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import tilewise
import tilewise.torch as tt
from tilewise import _entry, _warm
from tilewise.torch import _cpp
from tilewise.torch._warm import problem_counts


def network():
    return nn.Sequential(nn.Conv2d(4, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(8, 5)).to(DEVICE)


EXAMPLE = (2, 4, 10, 10)


def kinds(problems):
    return sorted(problem.partition(":")[0] for problem in problems)


def test_problems_of_inference_and_of_training(convolutions):
    model, x = network().eval(), torch.randn(EXAMPLE, device=DEVICE)
    inference = tt.problems(model, x)
    assert kinds(inference) == ["conv_fwd", "conv_fwd", "gemm"]
    assert any("g=2,c=8,k=8" in problem and "epilogue=bias" in problem for problem in inference)
    training = tt.problems(model.train(), x)
    assert set(inference) <= set(training)
    assert kinds(training)[:4] == ["conv_bwd_data", "conv_bwd_weight", "conv_bwd_weight", "conv_fwd"]
    assert tt.problems(model, x, training=False) == inference


def test_the_model_is_left_as_it_was(convolutions):
    model, x = network(), torch.randn(EXAMPLE, device=DEVICE)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    layers, before = [type(layer) for layer in model.modules()], torch.get_rng_state()
    tt.problems(model, x)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert [type(layer) for layer in model.modules()] == layers and torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_every_way_to_call_a_model_is_recorded():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.gate = nn.Linear(4, 6), nn.Linear(4, 6)

        def forward(self, x, *, gated=False):
            return self.inner(x) * self.gate(x) if gated else self.inner(x)

    model, x = Gated().to(DEVICE).eval(), torch.randn(3, 4, device=DEVICE)
    once = tt.problems(model, x)
    assert kinds(once) == ["gemm"] and problem_counts(model, x, example_kwargs={"gated": True}) == {once[0]: 2}
    assert tt.warm(model, x, example_kwargs={"gated": True}, progress=False) == once
    with torch.inference_mode():
        assert tt.problems(model, x) == once


def test_a_recording_holds_what_layers_and_their_gradients_run():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5)).to(DEVICE)
    tt.replace(model)
    with tilewise.recording() as recorded:
        model(torch.randn(3, 4, device=DEVICE)).sum().backward()
    assert kinds(recorded.problems()) == ["gemm"] * 5


@pytest.mark.skipif(not hasattr(TorchDispatchMode, "ignore_compile_internals"), reason="this torch compiles in no mode")
def test_a_recording_holds_what_a_compiled_model_runs():
    model, x = nn.Linear(4, 6).to(DEVICE), torch.randn(3, 4, device=DEVICE)
    compiled = torch.compile(model, backend="tilewise", options={"compiler": "eager"})
    with torch.no_grad():
        for _ in range(2):  # compiled within the recording, then before it
            with tilewise.recording() as recorded:
                compiled(x)
            assert kinds(recorded.problems()) == ["gemm"]


def test_a_recording_is_held_as_often_as_it_is_referred_to():
    for _ in range(3):
        with tilewise.recording() as recorded:
            tt.linear(torch.ones(2, 8, device=DEVICE), torch.ones(3, 8, device=DEVICE))
        assert sys.getrefcount(recorded) == 2


def test_a_recording_holds_gradients_of_other_threads():
    a, b = torch.ones(3, 4, device=DEVICE), torch.ones(5, 4, device=DEVICE)
    threads = set()

    class Nested(torch.autograd.Function):  # so deep that torch goes on in a thread of its own
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            if ctx.depth == 0:
                threads.add(threading.get_ident())
                tilewise.gemm(a, b)
                return dy, None
            with torch.enable_grad():
                x = torch.ones(1, requires_grad=True)
                Nested.apply(x, ctx.depth - 1).backward()
            return dy, None

    with tilewise.recording() as recorded:
        Nested.apply(torch.ones(1, requires_grad=True), 80).backward()
    assert kinds(recorded.problems()) == ["gemm"] and threads != {threading.get_ident()}


@pytest.mark.parametrize("replaced", [False, True])
def test_layers_whose_sizes_the_first_input_tells(replaced):
    model, x = nn.Sequential(nn.LazyLinear(6)).to(DEVICE).eval(), torch.randn(3, 4, device=DEVICE)
    if replaced:
        tt.replace(model)
    assert tt.problems(model, x) == tt.problems(nn.Linear(4, 6).to(DEVICE).eval(), x)
    assert model[0].has_uninitialized_params(), "the model is left as it was"


def test_those_recorded_are_those_that_run(convolutions):
    model, x = network().eval(), torch.randn(EXAMPLE, device=DEVICE)
    tt.replace(model)
    expected = tt.problems(model, x)
    _entry.entries.clear()
    with torch.no_grad():
        model(x)
    run = [entry.executable.problem for entry in _entry.entries.values()]
    if not run:
        pytest.skip("the C++ ops keep plans of their own")
    assert sorted(run) == sorted(expected)


def test_warm_compiles_what_is_missing(convolutions):
    model, x = network().eval(), torch.randn(EXAMPLE, device=DEVICE)
    tt.replace(model)
    told = []
    problems = tt.warm(model, x, progress=lambda done, total, kernel: told.append((done, total)))
    assert problems == tt.problems(model, x)
    assert [done for done, _ in told] == list(range(1, len(told) + 1)) and all(total == len(told) for _, total in told)
    again = []
    tt.warm(model, x, progress=lambda *given: again.append(given))
    assert again == [], "all is there"


@pytest.mark.compiles
@pytest.mark.parametrize("threads", [1, 2])
def test_tuned_kernels_are_those_that_the_ops_take(tmp_path, threads):
    program = f"""
import torch
from torch import nn
import tilewise.torch as tt
from tilewise import _runtime
torch.set_num_threads({threads})
model, x = nn.Linear(40, 24).eval(), torch.randn(8, 40)
tt.replace(model)
opened = [_runtime.context("cpu", count) for count in (0, 1, 2)]  # before there are records
tuned = tt.tune(model, x, seconds=60, progress=False)
problem, = tuned.kernels
for count in {{_runtime.threads_like_torch(), {threads}}}:
    assert _runtime.open_executable(problem, "cpu", None, None, None, None, _runtime.Executable, None, count).plan.source == "tuned"
"""
    if threads > len(os.sched_getaffinity(0)):
        pytest.skip("needs more CPUs")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_TORCH_CPP": "0"})
    assert done.returncode == 0, done.stderr


def test_kernels_that_were_chosen_before_are_forgotten(monkeypatch):
    forgotten, before = [], _warm.when_tuned
    monkeypatch.setattr(_warm, "when_tuned", [lambda: forgotten.append(True)])
    tilewise.tune([], seconds=0)
    assert forgotten == [True] and _cpp.forget_plans in before


def test_tune_stops_when_the_time_is_over(monkeypatch):
    built = []
    monkeypatch.setattr(_warm, "build", lambda problems, **options: built.append((problems, options["strategy"])))
    model, x = network().eval()[-1:], torch.randn(2, 8, device=DEVICE)
    tuned = tt.tune(model, x, seconds=0, progress=False)
    assert tuned.kernels == {} and tuned.left == tt.problems(model, x)
    assert built == [(tuned.left, "measure")], "compiled at once, before anything is measured"
