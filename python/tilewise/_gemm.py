# SPDX-License-Identifier: MIT
"""tilewise.gemm: from arrays to a problem, from the problem to a prepared kernel, and the launch.

The first call with operands of a kind works all of it out (_problem.py). Later calls with the same types,
shapes, strides, alignment and options find the prepared kernel under one key and only hand over addresses.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _arrays
from ._arrays import LOOKS, look_of
from ._operands import ALIAS, current_stream, fold_numbers, look_at_more, make_on_stream, stream_handle
from ._problem import DEFAULT_ALIGN, Call
from ._runtime import Executable, kernel_text, open_executable
from ._workspace import workspace as workspace_for
from .api import Kernel

_MOST_ENTRIES = 4096  # of the cache below: programs with ever new shapes must not grow for ever


class _Entry:
    """A prepared kernel, and how to make its output where none is given."""

    __slots__ = ("executable", "out_shape", "make_out", "cuda_index")

    def __init__(self, executable: Executable, out_shape: tuple[int, ...]):
        self.executable = executable
        self.out_shape = out_shape
        self.make_out: _arrays.Maker | None = None
        self.cuda_index = int(executable.device[5:]) if executable.device.startswith("cuda:") else -1


_entries: dict[Any, _Entry] = {}
os.register_at_fork(after_in_child=_entries.clear)


def _prepare(call: Call, problem: str, strategy: str | None, kernel: str | None, a: Any, stream: Any) -> _Entry:
    handle: int | None = None  # of interest for measuring alone: while it is captured, nothing is measured
    if strategy == "measure" and stream is not None:
        handle = stream_handle(stream)
    elif strategy == "measure" and call.device.startswith("cuda:"):
        handle = current_stream(a, int(call.device[5:]))
    executable = open_executable(problem, call.device, strategy, kernel, None, None, Executable, handle)
    call.check_against(executable)
    return _Entry(executable, call.out_shape)


def gemm(a: Any, b: Any, *, layout: str = "rcr", out: Any = None, out_dtype: Any = None, bias: Any = None,
         activation: str | None = None, d: Any = None, d_op: str | Sequence[str] = "add", alpha: float = 1.0,
         beta: float = 0.0, scale_a: Any = None, scale_b: Any = None, math: str = "strict", stream: Any = None,
         workspace: Any = None, kernel: str | Mapping[str, Any] | Kernel | None = None,
         strategy: str | None = None) -> Any:
    """C = D-ops(activation(alpha * scale_a * scale_b * A @ B + beta * C + bias)), in one kernel.

    Operands are NumPy arrays, torch tensors or objects with __dlpack__, in memory order: the letters of `layout` say for
    A, B and C whether an array is stored as written (r: A (m, k), B (k, n), C (m, n)) or transposed (c: A (k, m),
    B (n, k), C (n, m)). A leading dimension is a batch; an operand without it, or with 1 or stride 0, serves the batch.

    out         the array to write, and to add beta times of; made in a's library and device if not given
    out_dtype   of the output if it is made; by default the inputs', float16 for 8-bit floats, int32 for int8
    bias        n values of the output's type
    activation  relu, relu6, gelu, gelu_tanh, silu, sigmoid, tanh, hardswish, or several joined by +
    d, d_op     an array, or up to four, of C's shape and type, and how each is combined: add or mul
    scale_a/_b  numbers; or arrays of float32: both of one value, or of m and n values
    math        strict, fast, tf32 or tf32x3
    stream      an integer handle or an object with .cuda_stream; torch's current stream if not given
    workspace   an array for the kernel's scratch memory; made if not given
    kernel      a kernel's name or config: this one and no other;  strategy: how to choose, "measure" times the best few
    """
    address_a, key_a = (LOOKS.get(type(a)) or look_of(a, "a"))(a)
    address_b, key_b = (LOOKS.get(type(b)) or look_of(b, "b"))(b)
    if out is None:
        address_c, key_c = 0, out_dtype
    else:
        address_c, key_c = (LOOKS.get(type(out)) or look_of(out, "out"))(out)
    bits = address_a | address_b | address_c | DEFAULT_ALIGN
    if bias is None and d is None and scale_a is None and scale_b is None:
        more = key_more = None
    else:
        alpha, scale_a, scale_b = fold_numbers(alpha, scale_a, scale_b)
        more, key_more, more_bits = look_at_more(bias, d, scale_a, scale_b)
        key_more = (key_more, d_op if isinstance(d_op, str) else "+".join(d_op))
        bits |= more_bits
    kernel = None if kernel is None else kernel_text(kernel)
    key = (key_a, key_b, key_c, key_more, layout, activation, math, beta != 0, bits & -bits, kernel, strategy)
    entry = _entries.get(key)
    if entry is None:
        call = Call(a, b, out, out_dtype, bias, d, d_op, scale_a, scale_b)
        problem = call.problem_text(layout, activation, beta != 0, math, bits & -bits)
        entry = _prepare(call, problem, strategy, kernel, a, stream)
        if len(_entries) >= _MOST_ENTRIES:
            _entries.clear()
        # What could not be measured during a capture is measured the next time.
        if not any(note["kind"] == "capture" for note in entry.executable.plan.notes):
            _entries[key] = entry
    executable = entry.executable
    handle: int | None = None
    if stream is not None:
        handle = stream_handle(stream)
    elif entry.cuda_index >= 0:
        handle = current_stream(a, entry.cuda_index)
    if out is None:
        make = entry.make_out or _arrays.maker_like(a, entry.out_shape, executable.operands["c"].dtype)
        entry.make_out = make
        out, address_c = make() if stream is None else make_on_stream(make, a, stream)
        if address_c % DEFAULT_ALIGN:  # of an unusual allocator; its alignment is part of the problem
            return gemm(a, b, layout=layout, out=out, bias=bias, activation=activation, d=d, d_op=d_op, alpha=alpha,
                        scale_a=scale_a, scale_b=scale_b, math=math, stream=stream, workspace=workspace,
                        kernel=kernel, strategy=strategy)
    elif address_c == address_a or address_c == address_b:
        raise ValueError(ALIAS)
    if executable.workspace_bytes:
        with workspace_for(executable.workspace_bytes, workspace, a, executable.device, stream) as address:
            executable.launch(address_a, address_b, address_c, more, alpha, beta, handle, address)
    else:
        executable.launch(address_a, address_b, address_c, more, alpha, beta, handle, None)
    return out
