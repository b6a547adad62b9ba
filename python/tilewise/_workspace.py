# SPDX-License-Identifier: MIT
"""Scratch memory for kernels that need it: the caller's, torch's on a GPU, or spare blocks of the host kept for reuse."""
from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

from . import _arrays
from ._operands import make_on_stream

ALIGN = 16  # bytes, as tilewise.h asks for

_spare: list[tuple[Any, int, int]] = []  # (owner, address, bytes), in use by nobody


@contextlib.contextmanager
def workspace(need: int, given: Any, like: Any, device: str, stream: Any) -> Iterator[int]:
    """The address of `need` bytes on the device, kept from others until what the body has launched is done."""
    if given is not None:
        yield _checked(given, need, device)
    elif device == "cpu":
        block = _take(need)
        yield block[1]
        _spare.append(block)
    else:
        held, address = _of_torch(need, like, device, stream)
        yield address
        del held  # not before the launch


def _checked(given: Any, need: int, device: str) -> int:
    memory = _arrays.memory(given, "workspace")
    if memory.device != device:
        raise ValueError(f"workspace: it is on {memory.device}, the operands are on {device}")
    if memory.nbytes < need:
        raise ValueError(f"workspace: {memory.nbytes} bytes, but the kernel needs {need}")
    if memory.address % ALIGN or not memory.writable:
        raise ValueError(f"workspace: need writable memory at a multiple of {ALIGN} bytes")
    return memory.address


def _take(need: int) -> tuple[Any, int, int]:
    try:
        block = _spare.pop()  # as many blocks as calls at the same time
    except IndexError:
        block = (None, 0, 0)
    if block[2] < need:
        owner = (ctypes.c_char * (need + ALIGN))()
        block = (owner, -(-ctypes.addressof(owner) // ALIGN) * ALIGN, need)
    return block


def _of_torch(need: int, like: Any, device: str, stream: Any) -> tuple[Any, int]:
    if not _arrays.is_torch(like):
        raise ValueError(f"workspace: the kernel needs {need} bytes on {device}; give workspace=")
    # torch's allocator hands freed memory out again in the order of the stream it was made on, also while a graph is
    # captured; so it must be made on the stream that uses it.
    return make_on_stream(_arrays.maker_like(like, (need,), "int8"), like, stream)
