# SPDX-License-Identifier: MIT
"""Devices and prepared problems: one context for each device and process, made when first needed, and `Prepared`, a
problem with its kernel chosen, built and loaded. Launching is here too; what is launched on is checked by the callers.
"""
from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from . import _arrays, _library, _structs
from .api import Kernel, Plan, _from_json

_run = _library.function("tilewise_run")
_pack_b = _library.function("tilewise_pack_b")
_destroy = _library.function("tilewise_executable_destroy")

WORKSPACE_ALIGN = 16

_contexts: dict[str, int] = {}
_lock = threading.Lock()
_measuring = threading.Lock()  # two measurements at a time would disturb each other
_spare_workspaces: list[tuple[Any, int, int]] = []  # on the host: (owner, address, bytes), in use by nobody


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


def select_options(strategy: str | None, rule_set: str | None, kernel: str | None, top: int | None) -> Any:
    texts = [None if text is None else _library.encode(text) for text in (strategy, rule_set, kernel)]
    return _structs.SelectOptions(ctypes.sizeof(_structs.SelectOptions), *texts, top or 0)


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


class Prepared:
    """A problem made ready on a device: its kernel is chosen, built and loaded. Call it with the operands.

    One object may be called from many threads at once.
    """

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
        self._on_gpu = device != "cpu"
        self._blocks: list[tuple[_structs.Operands, int]] = []  # argument blocks in use by nobody
        self._matching: set[Any] = set()  # keys of operands that were checked

    def __del__(self) -> None:
        if getattr(self, "_handle", 0) and self._pid == os.getpid():  # a child leaves the parent's device alone
            _destroy(self._handle)

    def __repr__(self) -> str:
        return (f"Prepared({self.problem!r}, device={self.device!r}, kernel={self.kernel!r}, "
                f"source={self.plan.source!r}, workspace_bytes={self.workspace_bytes})")

    def __call__(self, a: Any, b: Any, *, out: Any = None, bias: Any = None, d: Any = None, alpha: float = 1.0,
                 beta: float = 0.0, scale_a: Any = None, scale_b: Any = None, stream: Any = None,
                 workspace: Any = None) -> Any:
        """Runs the problem on operands that have its types, shapes and strides, and returns `out`."""
        from . import _gemm
        return _gemm.call_prepared(self, a, b, out, bias, d, alpha, beta, scale_a, scale_b, stream, workspace)

    def pack_b(self, b: Any, packed: Any = None, stream: Any = None) -> Any:
        """For a problem with packed_b=1: B in the form that calls of this object take, of int8 or in `packed`."""
        from . import _gemm
        return _gemm.pack_b(self, b, packed, stream)

    def _launch(self, a: int, b: int, c: int, more: Any, alpha: float, beta: float, stream: int | None,
                workspace: int | None) -> None:
        """One launch; `more` is (bias, d..., scale_a, scale_b) as addresses, or None."""
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

    def _pack(self, b: int, packed: int, stream: int | None) -> None:
        status = _pack_b(self._handle, b, packed, stream)
        if status:
            raise _library.failure(status, "tilewise_pack_b")

    def _launch_with_workspace(self, a: int, b: int, c: int, more: Any, alpha: float, beta: float,
                               stream: int | None, workspace: Any, like: Any) -> None:
        need = self.workspace_bytes
        if workspace is not None:
            given = _arrays.operand(workspace, "workspace") if need else None
            if given is not None:
                check_workspace(given, need, self.device)
            return self._launch(a, b, c, more, alpha, beta, stream, given.address if given else None)
        if self._on_gpu:
            torch = sys.modules.get("torch")
            if torch is None or not _arrays.is_torch(like):
                raise ValueError(f"workspace: the kernel needs {need} bytes on {self.device}; give workspace=")
            # torch's allocator keeps the memory from others until what is in the stream now is done.
            held = torch.empty(need, dtype=torch.uint8, device=like.device)
            return self._launch(a, b, c, more, alpha, beta, stream, held.data_ptr())
        try:
            spare = _spare_workspaces.pop()
        except IndexError:
            spare = (None, 0, 0)
        if spare[2] < need:
            owner = (ctypes.c_char * (need + WORKSPACE_ALIGN))()
            spare = (owner, -(-ctypes.addressof(owner) // WORKSPACE_ALIGN) * WORKSPACE_ALIGN, need)
        self._launch(a, b, c, more, alpha, beta, stream, spare[1])
        _spare_workspaces.append(spare)


def check_workspace(given: _arrays.Operand, need: int, device: str) -> None:
    if given.device != device:
        raise ValueError(f"workspace: it is on {given.device}, the operands are on {device}")
    if given.nbytes < need:
        raise ValueError(f"workspace: {given.nbytes} bytes, but the kernel needs {need}")
    if given.address % WORKSPACE_ALIGN or not given.writable:
        raise ValueError(f"workspace: need writable memory at a multiple of {WORKSPACE_ALIGN} bytes")


def prepare(problem: str, *, device: Any = "cpu", strategy: str | None = None,
            kernel: str | Mapping[str, Any] | Kernel | None = None, rule_set: str | None = None,
            top: int | None = None) -> Prepared:
    """Chooses, builds and loads the kernel for a problem (its one-line text) on a device.

    strategy: "auto", "rules", "first-fit" or "measure", which times the `top` best first; kernel: this one and no other.
    """
    if not isinstance(problem, str):
        raise TypeError(f"problem: expected its text form, got {type(problem).__name__}")
    options = select_options(strategy, rule_set, kernel_text(kernel), top)
    if strategy == "measure":
        with _measuring:
            return Prepared(problem, device_name(device), options)
    return Prepared(problem, device_name(device), options)


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
