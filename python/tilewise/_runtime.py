# SPDX-License-Identifier: MIT
"""Devices and executables: one context for each device and process, made when first needed; a problem with its kernel
chosen, built and loaded, and its launch. Addresses come from callers that have checked what is there.
"""
from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import threading
from collections.abc import Mapping
from typing import Any, TypeVar

from . import _library, _structs
from .api import Kernel, Plan, _from_json

_run = _library.function("tilewise_run")
_pack_b = _library.function("tilewise_pack_b")
_destroy = _library.function("tilewise_executable_destroy")

_contexts: dict[str, int] = {}
_lock = threading.Lock()
_measuring = threading.Lock()  # two measurements at a time would disturb each other


def _forget_after_fork() -> None:
    # What the parent's device holds is the parent's: a child opens its own, and leaves the other alone.
    global _lock, _measuring
    _contexts.clear()
    _lock = threading.Lock()
    _measuring = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


def context(device: str) -> int:
    """The handle of this process's context for a device."""
    found = _contexts.get(device)
    if found is None:
        with _lock:
            found = _contexts.get(device)
            if found is None:
                found = _contexts[device] = _library.create("tilewise_context_create", device, None)
    return found


def kernel_text(kernel: str | Mapping[str, Any] | Kernel | None) -> str | None:
    if isinstance(kernel, Kernel):
        return kernel.name
    if isinstance(kernel, Mapping):
        return json.dumps(dict(kernel))
    if kernel is not None and not isinstance(kernel, str):
        raise TypeError(f"kernel: expected a name, JSON text, a dict or a Kernel, got {type(kernel).__name__}")
    return kernel


def select_options(strategy: str | None, rule_set: str | None, kernel: str | None, top: int | None,
                   stream: int | None = None) -> Any:
    texts = [None if text is None else _library.encode(text) for text in (strategy, rule_set, kernel)]
    return _structs.SelectOptions(ctypes.sizeof(_structs.SelectOptions), *texts, top or 0, stream)


def device_name(device: Any) -> str:
    """A device's name: given as text, or as a torch.device."""
    text = str(device)
    return "cuda:0" if text == "cuda" else text


@dataclasses.dataclass(frozen=True)
class OperandSpec:
    """An operand that a problem asks for: its type, shape, and strides in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Executable:
    """A problem made ready on a device: its kernel is chosen, built and loaded. May be used by many threads at once."""

    def __init__(self, problem: str, device: str, options: Any):
        self._pid = os.getpid()
        self._handle = 0
        self._handle = _library.create("tilewise_prepare", context(device), problem, ctypes.byref(options))
        facts = _library.call("tilewise_executable_describe", self._handle)
        self.device = device
        self.problem: str = facts["problem"]
        self.kernel: str = facts["kernel"]
        self.plan: Plan = _from_json(Plan, facts["plan"])
        self.workspace_bytes: int = facts["workspace_bytes"]
        self.packed_b_bytes: int = facts["packed_b_bytes"]
        self.align: int = facts["align"]
        self.operands: dict[str, OperandSpec] = {
            item["name"]: OperandSpec(item["name"], item["dtype"], tuple(item["shape"]), tuple(item["strides"]))
            for item in facts.get("operands", [])}
        self._blocks: list[tuple[_structs.Operands, int]] = []  # argument blocks in use by nobody

    # Bound here: when the interpreter ends, the names of the module may be gone first.
    def __del__(self, getpid: Any = os.getpid, destroy: Any = _destroy) -> None:
        if getattr(self, "_handle", 0) and self._pid == getpid():  # a child leaves the parent's device alone
            destroy(self._handle)

    def launch(self, a: int, b: int, c: int, more: Any, alpha: float, beta: float, stream: int | None,
               workspace: int | None) -> None:
        """One launch; `more` is (bias, [d...], scale_a, scale_b) as addresses, or None."""
        try:
            block = self._blocks.pop()
        except IndexError:  # as many blocks as calls at the same time
            operands = _structs.Operands(ctypes.sizeof(_structs.Operands))
            block = (operands, ctypes.addressof(operands))
        operands = block[0]
        operands.a = a
        operands.b = b
        operands.c = c
        operands.alpha = alpha
        operands.beta = beta
        if more is not None:
            operands.bias, d, operands.scale_a, operands.scale_b = more
            for i, address in enumerate(d):
                operands.d[i] = address
        if workspace is not None:
            operands.workspace = workspace
        status = _run(self._handle, block[1], stream)
        if status:
            raise _library.failure(status, "tilewise_run")
        self._blocks.append(block)

    def pack(self, b: int, packed: int, stream: int | None) -> None:
        status = _pack_b(self._handle, b, packed, stream)
        if status:
            raise _library.failure(status, "tilewise_pack_b")


AnyExecutable = TypeVar("AnyExecutable", bound=Executable)


def open_executable(problem: str, device: str, strategy: str | None, kernel: str | None, rule_set: str | None,
                    top: int | None, kind: type[AnyExecutable], stream: int | None = None) -> AnyExecutable:
    """Chooses, builds and loads the kernel for a problem's text; `stream` is where it will run."""
    options = select_options(strategy, rule_set, kernel, top, stream)
    if strategy == "measure":
        with _measuring:
            return kind(problem, device, options)
    return kind(problem, device, options)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A kernel's time on a problem; `roof` is the part of the device's peak that it reaches."""

    problem: str
    kernel: str
    us: float
    spread: float
    tflops: float
    gbps: float
    roof: float


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measurements, fastest first, and for kernels that did not run {"problem", "kernel", "reason"}."""

    device: str
    results: list[Measurement]
    failures: list[dict[str, str]]


def bench(problem: str, *, device: Any = "cpu", all: bool = False, strategy: str | None = None,
          kernel: str | Mapping[str, Any] | Kernel | None = None, rule_set: str | None = None,
          top: int | None = None) -> Bench:
    """Times the kernel that is chosen for a problem, or with all=True every kernel that may run it."""
    if not isinstance(problem, str):
        raise TypeError(f"problem: expected its text form, got {type(problem).__name__}")
    options = select_options(strategy, rule_set, kernel_text(kernel), top)
    with _measuring:
        answer = _library.call("tilewise_bench", context(device_name(device)), problem, ctypes.byref(options),
                               int(bool(all)))
    return Bench(answer["device"], [_from_json(Measurement, row) for row in answer["results"]], answer["failures"])
