# SPDX-License-Identifier: MIT
"""Times one model for benchmarks/models.py, in a process of its own: reads its task as JSON from the command line and prints the
result as the last line. The sides take turns, so that clocks and temperature are the same for all.
"""
import copy
import functools
import json
import statistics
import sys
import time
from collections.abc import Callable

import model_zoo
import torch
from torch import nn

import tilewise.torch as tt

INFERENCE = ("eager", "graph", "compile", "replace", "replace graph", "optimize")
TRAINING = ("train eager", "train compile", "train replace", "train tilewise")


class Side:
    """One way to run a model: step() runs it once; `first_s` is what it takes to the end of the first run, compiling included."""

    def __init__(self, name: str, make: Callable[[], Callable[[], torch.Tensor]], synchronize: Callable[[], None]):
        self.name, self._synchronize = name, synchronize
        self.times_ms: list[float] = []
        start = time.perf_counter()
        self.step = make()
        self.result = self.step().detach().double().cpu()
        synchronize()
        self.first_s = time.perf_counter() - start
        for _ in range(2):
            self.step()
        synchronize()

    def measure(self, repeats: int) -> None:
        self._synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            self.step()
        self._synchronize()
        self.times_ms.append((time.perf_counter() - start) / repeats * 1e3)

    def host_us(self) -> float:
        """Until a call returns, with nothing queued before it."""
        times = []
        for _ in range(10):
            self._synchronize()
            start = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - start)
        self._synchronize()
        return statistics.median(times) * 1e6


def _captured(step: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """The step as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()

    def replay() -> torch.Tensor:
        graph.replay()
        return result

    return replay


def _inference_step(name: str, subject: model_zoo.Subject, task: dict) -> Callable[[], torch.Tensor]:
    model, inputs = copy.deepcopy(subject.model).eval(), subject.inputs
    if name.startswith("replace"):
        tt.replace(model, strategy=task["strategy"])
    run: Callable[..., object] = model
    if name == "optimize":
        run = tt.optimize(model, *inputs, strategy=task["strategy"])
    elif name in ("compile", "max-autotune"):
        modes = {"compile": "reduce-overhead", "max-autotune": "max-autotune"}
        options = {**torch._inductor.list_mode_options(modes[name]), "freezing": True}
        run = torch.compile(model, options=options)

    def step() -> torch.Tensor:
        with torch.no_grad():
            return subject.to_tensor(run(*inputs))

    return _captured(step) if name.endswith("graph") else step


def _training_step(name: str, subject: model_zoo.Subject, task: dict) -> Callable[[], torch.Tensor]:
    """Forward, a sum of squares, backward; the result is the gradient of the parameters, as one vector."""
    model, inputs = copy.deepcopy(subject.model).train(), subject.inputs
    for layer in model.modules():
        if isinstance(layer, nn.Dropout) or type(layer).__name__ == "StochasticDepth":
            layer.p = 0.0
    if name == "train replace":
        tt.replace(model, strategy=task["strategy"])
    run: Callable[..., object] = model
    if name == "train compile":
        run = torch.compile(model)
    elif name == "train tilewise":
        import tilewise.torch.graph  # noqa: F401  makes the backend known
        run = torch.compile(model, backend="tilewise")
    parameters = list(model.parameters())
    first = True

    def step() -> torch.Tensor:
        nonlocal first
        model.zero_grad(set_to_none=True)
        subject.to_tensor(run(*inputs)).float().square().mean().backward()
        if not first:
            return next(x.grad for x in parameters if x.grad is not None)
        first = False
        # A parameter that nothing depends on has no gradient in eager mode, and zeros in a compiled graph.
        return torch.cat([(torch.zeros_like(x) if x.grad is None else x.grad).flatten().float() for x in parameters])

    return step


def _error(result: torch.Tensor, exact: torch.Tensor) -> float:
    return ((result - exact).norm() / exact.norm()).item()


def _phase(names: list[str], make: Callable[..., Callable[[], torch.Tensor]], subject: model_zoo.Subject,
           exact: torch.Tensor, task: dict, synchronize: Callable[[], None]) -> dict[str, dict]:
    sides, results = [], {}
    for name in names:
        print(f"{task['model']}: {name}", file=sys.stderr, flush=True)
        try:
            sides.append(Side(name, functools.partial(make, name, subject, task), synchronize))
        except Exception as error:  # one side that fails is a result, too
            results[name] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    for _ in range(task["rounds"]):
        for side in sides:
            side.measure(task["repeats"])
    for side in sides:
        results[side.name] = {"ms": statistics.median(side.times_ms), "least_ms": min(side.times_ms),
                              "first_s": side.first_s, "error": _error(side.result, exact)}
        if task["device"] != "cpu" and "graph" not in side.name:
            results[side.name]["host_us_per_layer"] = side.host_us() / max(1, subject.layers)
    return results


def _exact(make: Callable[..., Callable[[], torch.Tensor]], name: str, subject: model_zoo.Subject,
           task: dict) -> torch.Tensor:
    """The eager result in fp32, true fp32 on a GPU as well."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        return make(name, subject, task)().detach().double().cpu()


def run(task: dict) -> dict:
    device, dtype = torch.device(task["device"]), getattr(torch, task["dtype"])
    subject = model_zoo.make(task["model"], task["batch"], task["image"], task["tokens"])
    subject.model.to(device)
    subject.inputs = tuple(x.to(device) for x in subject.inputs)
    exact = {phase: _exact(make, name, subject, task) for phase, make, name in
             (("inference", _inference_step, "eager"), ("training", _training_step, "train eager")) if phase in task["phases"]}
    subject.model.to(dtype)
    subject.inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in subject.inputs)
    synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    sides: dict[str, dict] = {}
    if "inference" in exact:
        names = [name for name in INFERENCE if device.type == "cuda" or not name.endswith("graph")]
        names += ["max-autotune"] if task["max_autotune"] else []
        sides.update(_phase(names, _inference_step, subject, exact["inference"], task, synchronize))
    if "training" in exact:
        sides.update(_phase(list(TRAINING), _training_step, subject, exact["training"], task, synchronize))
    return {"model": task["model"], "layers": subject.layers, "sides": sides}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
