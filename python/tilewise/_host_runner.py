# SPDX-License-Identifier: MIT
"""What the original's runners run: one kernel on NumPy arrays, on the device of its arch, which the first run opens."""
from __future__ import annotations

import os
from typing import Any

from .config import KernelConfig
from .dispatcher import Dispatcher
from .dispatcher_common import device_of
from .problem import Problem


class HostRunner:
    """A kernel of an arch, on NumPy operands."""

    def __init__(self, kernel: KernelConfig, warmup: int = 1, repeat: int = 3):
        self.kernel, self.warmup, self.repeat = kernel, warmup, max(repeat, 1)
        self.device = device_of(kernel.arch)
        self._dispatcher: Dispatcher | None = None
        self._pid = 0

    def open(self) -> Dispatcher:
        """Opens the device; the first run of each process does."""
        if self._dispatcher is None or self._pid != os.getpid():
            made = Dispatcher(self.device, arch=self.kernel.arch)
            made.describe()
            self._dispatcher, self._pid = made, os.getpid()
        return self._dispatcher

    def close(self) -> None:
        self._dispatcher = None

    def run(self, problem: Problem, a: Any, b: Any) -> tuple[Any, float]:
        """The result, and the milliseconds of one launch, on average over `repeat` after `warmup`."""
        return self.open().time_host(problem, a, b, kernel=self.kernel, warmup=self.warmup, repeat=self.repeat)
