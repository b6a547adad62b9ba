# SPDX-License-Identifier: MIT
"""Which problems a model's layers run, and getting ready for them: compiled on all cores, and measured, before the first run."""
from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _warm
from .._recording import Recording, recording, surroundings
from .._runtime import threads_like_torch
from . import _ops
from ._modules import OURS
from ._replace import check_module, replace

Progress = bool | Callable[[int, int, str], Any] | None


class _PythonOps(TorchDispatchMode):  # type: ignore[misc]
    """Our ops as they are written in Python, whose problems can be recorded, also where the C++ ops are registered."""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Has torch.compile compile meanwhile, in any thread; else it leaves everything to eager mode, as an older torch does all
        the same. What it has compiled calls our ops, which is all that this looks for."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kernel = _ops.KERNELS.get(func._opname) if func.namespace == "tilewise" else None
        if kernel is None and func.namespace == "tilewise":  # a short way to an op, which inference mode shows
            with self:
                return func.decompose(*args, **(kwargs or {}))
        return (kernel or func)(*args, **(kwargs or {}))


surroundings.append(_PythonOps)


def threads_for(device: str) -> int:
    """How many threads the ops use on a device, as the library counts them."""
    return threads_like_torch() if device == "cpu" else 0


@contextlib.contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    """Whatever the model writes to its buffers and to the state of random numbers is put back."""
    before = {name: buffer.detach().clone() for name, buffer in model.named_buffers()
              if not isinstance(buffer, UninitializedBuffer)}
    on = {buffer.device.index or 0 for _, buffer in _tensors(model) if buffer.is_cuda}
    try:
        with torch.random.fork_rng(devices=sorted(on)):
            yield
    finally:
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in before:
                    buffer.copy_(before[name])


def _tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _ours(model: nn.Module, call: Callable[[nn.Module], Any]) -> nn.Module:
    """The model, or a copy with its layers replaced where it has none of ours, and with their sizes where the first call tells
    them."""
    is_lazy = any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters())
    if not is_lazy and any(isinstance(layer, tuple(OURS.values())) for layer in model.modules()):
        return model
    copied = copy.deepcopy(model)
    if is_lazy:
        with torch.no_grad():
            call(copied)
    replace(copied)
    return copied


def _results(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, dict):
        for value in result.values():
            yield from _results(value)
    elif isinstance(result, (list, tuple)):
        for value in result:
            yield from _results(value)


def _record(model: nn.Module, example: tuple[Any, ...], named: Mapping[str, Any] | None, training: bool | None) -> Recording:
    check_module(model, "the model of an example")
    training = model.training if training is None else training

    def call(model: nn.Module) -> Any:
        return model(*example, **(named or {}))

    model = _ours(model, call)
    with _unchanged(model), recording() as recorded, torch.set_grad_enabled(training):
        result = call(model)
        if training:
            losses = [y.float().sum() for y in _results(result) if y.requires_grad]
            wanted = [p for p in model.parameters() if p.requires_grad]
            if losses and wanted:
                torch.autograd.grad(sum(losses[1:], losses[0]), wanted, allow_unused=True)
    return recorded


def problems(model: nn.Module, *example: Any, example_kwargs: Mapping[str, Any] | None = None,
             training: bool | None = None) -> list[str]:
    """The problems that the layers of a model run on an example, as texts; with those of the gradients where the model is in
    training mode, or with training=True. example_kwargs: arguments of the model by name.

    The model is called once; tilewise's operations run nothing, all others do. A model without replaced layers is asked as if
    `replace` had been called. What it writes to its buffers is put back.
    """
    return list(problem_counts(model, *example, example_kwargs=example_kwargs, training=training))


def problem_counts(model: nn.Module, *example: Any, example_kwargs: Mapping[str, Any] | None = None,
                   training: bool | None = None) -> dict[str, int]:
    """As `problems`, with how often each is run."""
    return _record(model, example, example_kwargs, training).counts()


def warm(model: nn.Module, *example: Any, example_kwargs: Mapping[str, Any] | None = None, training: bool | None = None,
         strategy: str | None = None, jobs: int = 0, progress: Progress = None) -> list[str]:
    """Compiles all kernels that a model needs for an example on all cores, so that its first call waits for none; returns the
    problems.

    strategy, jobs, progress: as tilewise.build has them; example_kwargs, training: as `problems` has them
    """
    recorded = _record(model, example, example_kwargs, training)
    for device in recorded.devices:
        _warm.build(recorded.problems(device), device=device, strategy=strategy, jobs=jobs, threads=threads_for(device),
                    progress=progress)
    return recorded.problems()


def tune(model: nn.Module, *example: Any, example_kwargs: Mapping[str, Any] | None = None, seconds: float = 60.0,
         training: bool | None = None, jobs: int = 0, progress: Progress = None) -> _warm.Tuned:
    """Measures the best few kernels of each problem of a model, for `seconds` and a little more, and remembers the winners:
    calls from now on, in this process and others, take them. Returns the kernels, and the problems that are left.

    example_kwargs, training, jobs, progress: as `warm` has them
    """
    recorded = _record(model, example, example_kwargs, training)
    tuned = _warm.Tuned({})
    for device in recorded.devices:
        part = recorded.problems(device)
        share = seconds * len(part) / max(len(recorded.problems()), 1)
        one = _warm.tune(part, device=device, seconds=share, jobs=jobs, threads=threads_for(device), progress=progress)
        tuned.kernels.update(one.kernels)
        tuned.errors.update(one.errors)
        tuned.left.extend(one.left)
    return tuned
