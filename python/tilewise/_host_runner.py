# SPDX-License-Identifier: MIT
"""The original's runners run through this: one kernel, or the one that is chosen, on NumPy arrays, on the device of its arch, which the
first run opens.
"""
from __future__ import annotations

import os
from typing import Any

from ._compat_device import default_arch, device_of
from ._host_run import launch_once
from .config import KernelConfig
from .dispatcher import Dispatcher
from .problem import Problem
from .registry import Registry


class HostRunner:
    """A kernel of an arch, on NumPy operands; without one, whichever is chosen for each problem."""

    def __init__(self, kernel: KernelConfig | None, warmup: int = 1, repeat: int = 3):
        self.kernel, self.warmup, self.repeat = kernel, warmup, max(repeat, 1)
        self.arch = default_arch() if kernel is None else kernel.arch
        self.device = device_of(self.arch)
        self._dispatcher: Dispatcher | None = None
        self._pid = 0

    def open(self) -> Dispatcher:
        """Opens the device; the first run of each process does."""
        if self._dispatcher is None or self._pid != os.getpid():
            made = Dispatcher(self.device, arch=self.arch)
            made.describe()
            self._dispatcher, self._pid = made, os.getpid()
        return self._dispatcher

    def close(self) -> None:
        self._dispatcher = None

    def run(self, problem: Problem, a: Any, b: Any, split_k: int = 1) -> tuple[Any, float]:
        """The result, and the milliseconds of one launch, on average over `repeat` after `warmup`."""
        return self.open().time_host(problem, a, b, kernel=self._split(problem, split_k), warmup=self.warmup,
                                     repeat=self.repeat)

    def run_pointers(self, problem: Problem, a: int, b: int, c: int) -> float:
        """One launch on memory of the device; the milliseconds that it took, until it was done."""
        made = self.open().prepare(problem, kernel=self.kernel)
        return launch_once(made, self.open()._open(), a, b, c)

    def _split(self, problem: Problem, split_k: int) -> KernelConfig | None:
        """The kernel with its reduction in so many parts, where it can be cut."""
        if self.kernel is None or split_k <= 1:
            return self.kernel
        cut = self.kernel.replace(split_k=split_k)
        return cut if cut.available and cut.check() and self.may_run(problem, cut) else self.kernel

    def may_run(self, problem: Problem, kernel: KernelConfig | None = None) -> bool:
        """Whether the kernel, or any, may run a problem. Opens no device."""
        only = kernel or self.kernel
        if only is None:
            return bool(Dispatcher(None, arch=self.arch).select(problem))
        registry = Registry("one")
        registry.add(only)
        return bool(Dispatcher(None, arch=self.arch, registry=registry).select(problem))
