# SPDX-License-Identifier: MIT
"""Devices and executables: one context for each device and process, made when first needed; a problem with its kernel
chosen, built and loaded, and its launch. Addresses come from callers that have checked what is there.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any, TypeVar

from . import _library, _structs
from ._answers import Bench, Kernel, Measurement, OperandSpec, Plan, from_json, list_of, operand_specs
from ._arrays import json_text
from ._devices import device_name
from ._notes import warn_of
from .config import KernelConfig
from .problem import Problem, problem_text

AnyKernel = str | Mapping[str, Any] | Kernel | KernelConfig | None

_run = _library.function("tilewise_run")
_pack_b = _library.function("tilewise_pack_b")
_destroy = _library.function("tilewise_executable_destroy")

_contexts: dict[tuple[str, int], int] = {}
_lock = threading.Lock()
_measuring = threading.RLock()  # two measurements at a time would disturb each other


def _forget_after_fork() -> None:
    # The parent's device and its memory belong to the parent: a child opens its own, and leaves the other alone.
    global _lock, _measuring
    _contexts.clear()
    _lock = threading.Lock()
    _measuring = threading.RLock()


os.register_at_fork(after_in_child=_forget_after_fork)


def opening() -> contextlib.AbstractContextManager[Any]:
    """Held by whoever opens a device."""
    return _lock


def measuring() -> contextlib.AbstractContextManager[Any]:
    """Held by whoever measures."""
    return _measuring


def context(device: str, threads: int = 0) -> int:
    """The handle of this process's context for a device, with so many threads of the CPU; 0: as many as the library takes."""
    key = (device, threads)
    found = _contexts.get(key)
    if found is None:
        with _lock:
            found = _contexts.get(key)
            if found is None:
                options = _structs.ContextOptions(ctypes.sizeof(_structs.ContextOptions), None, None, threads)
                found = _contexts[key] = _library.create("tilewise_context_create", device, ctypes.byref(options))
    return found


def contexts_of(device: str) -> list[int]:
    """The handles of this process's contexts for a device, which differ in their threads."""
    return [handle for (name, _), handle in list(_contexts.items()) if name == device]


@functools.cache
def most_kept() -> int:
    """How many problems are kept ready, here as in the library."""
    kept: int = _library.call("tilewise_context_describe", context("cpu"))["plan_cache"]
    return kept


def threads_like_torch() -> int:
    """How many threads torch, which is imported, uses for an operation on the CPU, as far as there are CPUs; 0 where that is what
    the library takes, or where TILEWISE_THREADS says otherwise."""
    if _library.variable("TILEWISE_THREADS"):
        return 0
    facts = _library.call("tilewise_context_describe", context("cpu"))
    count: int = min(sys.modules["torch"].get_num_threads(), facts["cpus"])
    return 0 if count == facts["threads"] else count


def check_number(value: Any, name: str) -> None:
    """Whether a value may be a factor of a product."""
    try:
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise TypeError
        float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}") from None
    except OverflowError:
        raise ValueError(f"{name}: the number is beyond those of float32") from None


def kernel_text(kernel: AnyKernel) -> str | None:
    if isinstance(kernel, (Kernel, KernelConfig)):
        return kernel.name
    if isinstance(kernel, Mapping):
        return json_text(kernel)
    if kernel is not None and not isinstance(kernel, str):
        raise TypeError(f"kernel: expected a name, JSON text, a dict or a Kernel, got {type(kernel).__name__}")
    return kernel


def select_options(strategy: str | None, rule_set: str | None, kernel: str | None, top: int | None,
                   stream: int | None = None) -> Any:
    texts = [None if text is None else _library.encode(_library.word(text, name))
             for text, name in ((strategy, "strategy"), (rule_set, "rule_set"), (kernel, "kernel"))]
    return _structs.SelectOptions(ctypes.sizeof(_structs.SelectOptions), *texts, _library.whole(top or 0, "top"), stream)


AnyExecutable = TypeVar("AnyExecutable", bound="Executable")


class Executable:
    """A problem made ready on a device: its kernel is chosen, built and loaded. May be used by many threads at once."""

    def __init__(self, problem: str, device: str, options: Any, opened: int | None = None):
        """`opened`: a context of the device; this process's own if not given."""
        self._pid = os.getpid()
        self._handle = 0
        self._handle = _library.create("tilewise_prepare", opened or context(device), problem, ctypes.byref(options))
        facts = _library.call("tilewise_executable_describe", self._handle)
        self.device = device
        self.problem: str = facts["problem"]
        self.kernel: str = facts["kernel"]
        self.plan: Plan = from_json(Plan, facts["plan"])
        warn_of(self.plan.notes)
        self.threads: int | None = facts["threads"]  # of the CPU that share a launch
        self.workspace_bytes: int = facts["workspace_bytes"]
        self.packed_b_bytes: int = facts["packed_b_bytes"]
        self.align: int = facts["align"]
        self.operands: dict[str, OperandSpec] = operand_specs(facts.get("operands", []))
        self._blocks: list[tuple[_structs.Operands, int]] = []  # argument blocks in use by nobody

    # Bound here: when the interpreter ends, the names of the module may be gone first.
    def __del__(self, getpid: Any = os.getpid, destroy: Any = _destroy) -> None:
        if getattr(self, "_handle", 0) and self._pid == getpid():  # a child leaves the parent's device alone
            destroy(self._handle)

    def __copy__(self: AnyExecutable) -> AnyExecutable:
        return self  # nothing of it changes, and the handle has one owner

    def __deepcopy__(self: AnyExecutable, _memo: Any) -> AnyExecutable:
        return self

    def __reduce_ex__(self, _protocol: Any) -> Any:
        raise TypeError(f"the prepared problem {self.problem} is code of this process and cannot be pickled; send the problem's text, "
                        "and prepare it there")

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
        try:
            operands.alpha = alpha
            operands.beta = beta
        except (TypeError, OverflowError):
            check_number(alpha, "alpha")
            check_number(beta, "beta")
            raise
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


def open_executable(problem: str, device: str, strategy: str | None, kernel: str | None, rule_set: str | None,
                    top: int | None, kind: type[AnyExecutable], stream: int | None = None,
                    threads: int = 0) -> AnyExecutable:
    """Chooses, builds and loads the kernel for a problem's text; nothing is measured while `stream` is captured."""
    options = select_options(strategy, rule_set, kernel, top, stream)
    opened = context(device, threads)
    if strategy == "measure":
        with measuring():
            return kind(problem, device, options, opened)
    return kind(problem, device, options, opened)


def bench_from(answer: Mapping[str, Any]) -> Bench:
    warn_of(answer["notes"])
    return Bench(answer["device"], list_of(Measurement, answer["results"]), answer["failures"], answer["notes"])


def bench(problem: str | Problem, *, device: Any = "cpu", all: bool = False, strategy: str | None = None,
          kernel: AnyKernel = None, rule_set: str | None = None, top: int | None = None) -> Bench:
    """Times the chosen kernel of a problem. With all=True it times every kernel that may run the problem."""
    options = select_options(strategy, rule_set, kernel_text(kernel), top)
    with measuring():
        return bench_from(_library.call("tilewise_bench", context(device_name(device)), problem_text(problem),
                                        ctypes.byref(options), int(bool(all))))
