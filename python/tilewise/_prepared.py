# SPDX-License-Identifier: MIT
"""tilewise.prepare: a problem made ready by its text, and called with operands that must be as the text says."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from . import _arrays, _library
from ._arrays import Operand, look, memory, operand
from ._devices import device_name, gpu_index
from ._operands import (SINGLE, check_operand, current_stream, fold_numbers, list_of_d, look_at_more,
                        make_on_stream, stream_handle, torch_stream)
from ._runtime import AnyKernel, Executable, kernel_text, open_executable
from ._workspace import workspace as workspace_for
from .problem import Problem, problem_text


class Prepared(Executable):
    """A problem made ready on a device: its kernel is chosen, built and loaded. Call it with the operands.

    kernel, plan, problem, device, workspace_bytes, packed_b_bytes, operands (name: type, shape, strides) say what it is. One
    object may be called from many threads at once.
    """

    def __init__(self, problem: str, device: str, options: Any, opened: int | None = None):
        super().__init__(problem, device, options, opened)
        self._matching: set[Any] = set()  # keys of operands that were checked
        self._gpu = gpu_index(self.device)

    def __repr__(self) -> str:
        return (f"Prepared({self.problem!r}, device={self.device!r}, kernel={self.kernel!r}, "
                f"source={self.plan.source!r}, workspace_bytes={self.workspace_bytes})")

    def __call__(self, a: Any, b: Any, *, out: Any = None, bias: Any = None, d: Any = None, alpha: float = 1.0,
                 beta: float = 0.0, scale_a: Any = None, scale_b: Any = None, stream: Any = None,
                 workspace: Any = None) -> Any:
        """Runs the problem on operands that have its types, shapes and strides, and returns `out`."""
        alpha, scale_a, scale_b = fold_numbers(alpha, scale_a, scale_b)
        if out is None and beta != 0:
            raise ValueError("beta: it multiplies what is in out, so out must be given")
        if beta != 0 and ",beta=1" not in self.problem:
            raise ValueError(f"beta: the problem {self.problem} has none; add beta=1 to it")
        if out is None:
            out = self._make_out(a, stream)
        address_a, key_a = look(a, "a")
        address_b, key_b = look(b, "b")
        address_c, key_c = look(out, "out")
        more, key_more, bits = look_at_more(bias, d, scale_a, scale_b)
        bits |= address_a | address_b | address_c | self.align
        key = (key_a, key_b, key_c, key_more, bits & -bits)
        if key not in self._matching:
            given = {"a": a, "b": b, "c": out, "bias": bias, "scale_a": scale_a, "scale_b": scale_b}
            given.update((f"d{i}", x) for i, x in enumerate(list_of_d(d)))
            self._check(given)
            self._matching.add(key)
        handle = self._stream(a, stream)
        if self.workspace_bytes or workspace is not None:
            with workspace_for(self.workspace_bytes, workspace, a, self.device, stream) as address:
                self.launch(address_a, address_b, address_c, more, alpha, beta, handle, address)
        else:
            self.launch(address_a, address_b, address_c, more, alpha, beta, handle, None)
        return out

    def pack_b(self, b: Any, packed: Any = None, stream: Any = None) -> Any:
        """For a problem with packed_b=1: B in the form that calls of this object take, as int8 or in `packed`."""
        if not self.packed_b_bytes:
            raise ValueError(f"the problem {self.problem} takes B as it is; add packed_b=1 to it")
        x = operand(b, "b")
        self._check_place(x)
        check_operand(x, self.operands["b"])
        if packed is None:
            packed = make_on_stream(_arrays.maker_like(b, (self.packed_b_bytes,), "int8", self.align), b, stream)[0]
        to = memory(packed, "packed")
        self._check_place(to)
        if to.nbytes < self.packed_b_bytes or not to.writable:
            raise ValueError(f"packed: need {self.packed_b_bytes} writable bytes, not {to.nbytes}")
        self.pack(look(b, "b")[0], to.address, self._stream(b, stream))
        return packed

    def _check(self, given: Mapping[str, Any]) -> None:
        for name in self.operands:
            if given.get(name) is None and name != "c":
                raise ValueError(f"{name}: the problem {self.problem} needs it")
        for name, value in given.items():
            if value is None:
                continue
            if name not in self.operands:
                raise ValueError(f"{name}: the problem {self.problem} has none")
            is_packed = name == "b" and self.packed_b_bytes > 0
            x = (memory if is_packed else operand)(value, "out" if name == "c" else name)
            self._check_place(x)
            if name == "c" and not x.writable:
                raise ValueError("out: it is read-only")
            if is_packed:
                if x.nbytes < self.packed_b_bytes:
                    raise ValueError(f"b: {x.nbytes} bytes, but its packed form has {self.packed_b_bytes}; use pack_b")
            else:
                check_operand(x, self.operands[name])

    def _check_place(self, x: Operand) -> None:
        if x.device != self.device:
            raise ValueError(f"{x.name}: it is on {x.device}, but the problem was prepared for {self.device}")
        if x.address % self.align and x.shape not in SINGLE:
            raise ValueError(f"{x.name}: its address is not a multiple of {self.align} bytes, which the problem "
                             "promises (align=)")

    def _make_out(self, a: Any, stream: Any) -> Any:
        spec = self.operands["c"]
        step = 1
        for size, stride in zip(reversed(spec.shape), reversed(spec.strides)):
            if stride != step:
                raise ValueError(f"out: the problem's output has strides {spec.strides}; give an array that has them")
            step *= size
        return make_on_stream(_arrays.maker_like(a, spec.shape, spec.dtype, self.align), a, stream)[0]

    def _stream(self, a: Any, stream: Any) -> int | None:
        if stream is not None:
            return stream_handle(stream, self.device)
        return current_stream(a, self._gpu) if self._gpu >= 0 else None


def prepare(problem: str | Problem, *, device: Any = "cpu", strategy: str | None = None, kernel: AnyKernel = None,
            rule_set: str | None = None, top: int | None = None, threads: int = 0) -> Prepared:
    """Chooses, builds and loads the kernel for a problem (its one-line text, or a Problem) on a device.

    strategy: "auto", "rules", "first-fit", "model" or "measure", which times the `top` best first; kernel: this one and no other.
    threads: of the CPU; 0: all that this process may use.
    """
    text, name = problem_text(problem), device_name(device)
    # Only measuring asks for the stream: while torch captures it, nothing is measured.
    on_torch = strategy == "measure" and gpu_index(name) >= 0 and "torch" in sys.modules
    stream = torch_stream(gpu_index(name)) if on_torch else None
    return open_executable(text, name, strategy, kernel_text(kernel), rule_set, top, Prepared, stream,
                           _library.whole(threads, "threads"))
