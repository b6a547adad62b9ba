# SPDX-License-Identifier: MIT
"""How the kernels of one layer are chosen where that is not left to the library: a strategy, or kernels by name. A layer says
it around its call; the gradients of that call remember it.
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Iterator
from typing import Any

from .. import _warm
from ..config import KernelConfig


@dataclasses.dataclass(frozen=True)
class Choice:
    """A strategy, and kernels by name, each for the operation that it computes."""

    strategy: str | None = None
    kernels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.strategy is not None:
            _warm.build([], strategy=self.strategy)  # the library knows the strategies, and says so now, not in a first call

    def __str__(self) -> str:
        words = [f"strategy={self.strategy}"] if self.strategy else []
        return ", ".join(words + [f"kernel={name}" for name in self.kernels])


@functools.cache
def operation(kernel: str) -> tuple[str, str]:
    """What a kernel computes: the operation and the layout."""
    config = KernelConfig(kernel)
    return str(config.op), str(config.layout)


class _Now(threading.local):
    choice: Choice | None = None


now = _Now()


def current() -> Choice | None:
    """The choice of the layer that this thread computes; None leaves it to the library."""
    return now.choice


@contextlib.contextmanager
def choosing(choice: Choice | None) -> Iterator[None]:
    before = current()
    now.choice = choice
    try:
        yield
    finally:
        now.choice = before


def options(op: str, layout: str | None = None) -> dict[str, Any]:
    """The arguments strategy and kernel of an operation of the library; a product has a layout."""
    choice = current()
    if choice is None:
        return {}
    for kernel in choice.kernels:
        of, lies = operation(kernel)
        if of == op and (layout is None or lies in ("any", layout)):
            return {"kernel": kernel}
    return {"strategy": choice.strategy}
