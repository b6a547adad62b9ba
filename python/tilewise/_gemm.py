# SPDX-License-Identifier: MIT
"""tilewise.gemm: from arrays to a problem, from the problem to a prepared kernel, and the launch.

The first call with operands of a kind works all of it out (_Call, _problem_text). Later calls with the same types,
shapes, strides, alignment and options find the prepared kernel under one key and only hand over addresses.
"""
from __future__ import annotations

import numbers
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from . import _arrays, _structs
from ._arrays import LOOKS, Operand, look, look_of, operand
from ._runtime import OperandSpec, Prepared, kernel_text, prepare
from .api import Kernel

_ALIGN = 16  # bytes; more is never asked of a pointer
_MOST_ENTRIES = 4096  # of the cache below: programs with ever new shapes must not grow for ever


class _Entry:
    """A prepared kernel, and how to make its output where none is given."""

    __slots__ = ("prepared", "make_out", "cuda_index")

    def __init__(self, prepared: Prepared, make_out: _arrays.Maker | None):
        self.prepared = prepared
        self.make_out = make_out
        self.cuda_index = int(prepared.device[5:]) if prepared.device.startswith("cuda:") else -1


_entries: dict[Any, _Entry] = {}
os.register_at_fork(after_in_child=_entries.clear)


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
    bits = address_a | address_b | address_c | _ALIGN
    if bias is None and d is None and scale_a is None and scale_b is None:
        more = key_more = None
    else:
        alpha, scale_a, scale_b = _fold_numbers(alpha, scale_a, scale_b)
        more, key_more, more_bits = _look_at_more(bias, d, scale_a, scale_b)
        key_more = (key_more, d_op if isinstance(d_op, str) else "+".join(d_op))
        bits |= more_bits
    if kernel is not None and type(kernel) is not str:
        kernel = kernel_text(kernel)
    key = (key_a, key_b, key_c, key_more, layout, activation, math, beta != 0, bits & -bits, kernel, strategy)
    entry = _entries.get(key)
    if entry is None:
        call = _Call(a, b, out, out_dtype, bias, d, d_op, scale_a, scale_b)
        text = call.problem_text(layout, activation, beta != 0, math, bits & -bits)
        prepared = prepare(text, device=call.device, kernel=kernel, strategy=strategy)
        call.check_against(prepared)
        dtype = prepared.operands["c"].dtype
        entry = _Entry(prepared, _arrays.maker_like(a, call.out_shape, dtype) if out is None else None)
        if len(_entries) >= _MOST_ENTRIES:
            _entries.clear()
        _entries[key] = entry
    prepared = entry.prepared
    if stream is not None:
        handle = _stream_handle(stream)
    elif entry.cuda_index >= 0:
        handle = _current_stream(a, entry.cuda_index)
    else:
        handle = None
    if out is None:
        out, address_c = entry.make_out() if stream is None else _make_on_stream(entry.make_out, a, stream)
        if address_c % _ALIGN:  # of an unusual allocator; its alignment is part of the problem
            return gemm(a, b, layout=layout, out=out, bias=bias, activation=activation, d=d, d_op=d_op, alpha=alpha,
                        scale_a=scale_a, scale_b=scale_b, math=math, stream=stream, workspace=workspace,
                        kernel=kernel, strategy=strategy)
    elif address_c == address_a or address_c == address_b:
        raise ValueError("out: it is also an input, which the kernel still reads while it writes; use another array")
    if prepared.workspace_bytes:
        prepared._launch_with_workspace(address_a, address_b, address_c, more, alpha, beta, handle, workspace, a)
    else:
        prepared._launch(address_a, address_b, address_c, more, alpha, beta, handle, None)
    return out


def _fold_numbers(alpha: float, scale_a: Any, scale_b: Any) -> tuple[float, Any, Any]:
    """Scales that are numbers become a part of alpha."""
    if isinstance(scale_a, numbers.Real):
        alpha, scale_a = alpha * float(scale_a), None
    if isinstance(scale_b, numbers.Real):
        alpha, scale_b = alpha * float(scale_b), None
    return alpha, scale_a, scale_b


def _list_of_d(d: Any) -> Sequence[Any]:
    if d is None:
        return ()
    return d if isinstance(d, (list, tuple)) else (d,)


def _look_at_more(bias: Any, d: Any, scale_a: Any, scale_b: Any) -> tuple[Any, Any, int]:
    """Addresses, key and alignment bits of the operands that not every product has."""
    bits = 0
    addresses: list[int | None] = []
    keys = []
    ds = _list_of_d(d)
    if len(ds) > _structs.D_TENSORS:
        raise ValueError(f"d: {len(ds)} arrays; at most {_structs.D_TENSORS}")
    for x, name in ((bias, "bias"), *((x, f"d[{i}]") for i, x in enumerate(ds)), (scale_a, "scale_a"),
                    (scale_b, "scale_b")):
        if x is None:
            addresses.append(None)
            keys.append(None)
            continue
        address, key = look(x, name)
        addresses.append(address)
        keys.append(key)
        if key[1] not in ((), (1,)):  # a single value is read alone, wherever it is
            bits |= address
    return (addresses[0], addresses[1:-2], addresses[-2], addresses[-1]), tuple(keys), bits


# ---- streams and outputs ---------------------------------------------------------------------------------------------


def _stream_handle(stream: Any) -> int:
    handle = getattr(stream, "cuda_stream", stream)
    if not isinstance(handle, int):
        raise TypeError(f"stream: expected an integer handle or an object with .cuda_stream, got {type(stream).__name__}")
    return handle


def _current_stream(a: Any, index: int) -> int | None:
    if not _arrays.is_torch(a):
        return None
    torch = sys.modules["torch"]
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return quick(index) if quick else torch.cuda.current_stream(index).cuda_stream


def _make_on_stream(make: _arrays.Maker, a: Any, stream: Any) -> tuple[Any, int]:
    """Memory of a GPU belongs to the stream it is made on, which must be the one that writes it."""
    if not _arrays.is_torch(a) or a.device.type != "cuda":
        return make()
    torch = sys.modules["torch"]
    with torch.cuda.stream(torch.cuda.ExternalStream(_stream_handle(stream), device=a.device)):
        return make()


# ---- from arrays to a problem ----------------------------------------------------------------------------------------


class _Matrix:
    """A stored matrix, or a batch of them: rows, columns, and the strides that are not the packed ones."""

    def __init__(self, x: Operand):
        if len(x.shape) not in (2, 3):
            raise ValueError(f"{x.name}: {len(x.shape)} dimensions {x.shape}; need 2, or 3 with a batch")
        self.batch = x.shape[0] if len(x.shape) == 3 else None
        self.rows, self.columns = x.shape[-2:]
        leading, step = x.strides[-2:]
        if self.columns > 1 and step != 1:
            hint = (f"it is a transposed view: give {x.name}.T and the other letter of layout"
                    if len(x.shape) == 2 and leading == 1 else "make it contiguous")
            raise ValueError(f"{x.name}: its last dimension has stride {step}, need 1; {hint} "
                             f"(numpy.ascontiguousarray, .contiguous() in torch)")
        self.leading = leading if self.rows > 1 else self.columns  # of one row it means nothing
        if self.leading < self.columns:
            raise ValueError(f"{x.name}: its rows of {self.columns} are {leading} apart, so they overlap or run "
                             "backwards; make it contiguous (numpy.ascontiguousarray, .contiguous() in torch)")
        self.batch_stride = x.strides[0] if self.batch is not None and self.batch > 1 else 0
        if self.batch_stride < 0:
            raise ValueError(f"{x.name}: its batch runs backwards; make it contiguous")

    def fields(self, letter: str, batch: int) -> str:
        text = "" if self.leading == self.columns else f",ld{letter}={self.leading}"
        if batch > 1 and self.batch_stride != self.rows * self.leading:
            text += f",batch_stride_{letter}={self.batch_stride}"
        return text


def _stored(letter: str, rows: int, columns: int) -> tuple[int, int]:
    return (rows, columns) if letter == "r" else (columns, rows)


class _Call:
    """The operands of one call, checked against each other as far as the library cannot see them."""

    def __init__(self, a: Any, b: Any, out: Any, out_dtype: Any, bias: Any, d: Any, d_op: Any, scale_a: Any,
                 scale_b: Any):
        self.a, self.b = operand(a, "a"), operand(b, "b")
        self.out = None if out is None else operand(out, "out")
        self.out_dtype = None if out_dtype is None else _arrays.dtype_name(out_dtype)
        self.bias = None if bias is None else operand(bias, "bias")
        self.d = [operand(x, f"d[{i}]") for i, x in enumerate(_list_of_d(d))]
        self.d_ops = d_op.split("+") if isinstance(d_op, str) else list(d_op)
        if len(self.d_ops) == 1:
            self.d_ops *= len(self.d)
        if self.d and len(self.d_ops) != len(self.d):
            raise ValueError(f"d_op: {len(self.d_ops)} operations for {len(self.d)} arrays; need one, or one for each")
        if (scale_a is None) != (scale_b is None):
            raise ValueError("scale_a, scale_b: an array for both, or for neither; where one has none give ones")
        self.scales = [] if scale_a is None else [operand(scale_a, "scale_a"), operand(scale_b, "scale_b")]
        self.device = self.a.device
        if self.out is not None and not self.out.writable:
            raise ValueError("out: it is read-only")
        for x in (self.b, self.out, self.bias, *self.d, *self.scales):
            if x is not None and x.device != self.device:
                raise ValueError(f"{x.name}: it is on {x.device}, but a is on {self.device}; move one of them")

    def problem_text(self, layout: str, activation: str | None, beta: bool, math: str, align: int) -> str:
        if not isinstance(layout, str) or len(layout) != 3 or set(layout) - {"r", "c"}:
            raise ValueError(f"layout: {layout!r}; need three letters of r and c, for A, B and C")
        a, b = _Matrix(self.a), _Matrix(self.b)
        m, k = _stored(layout[0], a.rows, a.columns)
        b_k, n = _stored(layout[1], b.rows, b.columns)
        if k != b_k:
            raise ValueError(f"a {self.a.shape} and b {self.b.shape} do not match in layout {layout}: "
                             f"a has k={k}, b has k={b_k}{_layout_hint(layout, k, b)}")
        batch = self._batch(a, b)
        self.out_shape = (() if a.batch is None and b.batch is None else (batch,)) + _stored(layout[2], m, n)
        text = f"gemm:m={m},n={n},k={k},dtype={self.a.dtype},layout={layout}"
        text += f",batch={batch}" if batch > 1 else ""
        text += f",b={self.b.dtype}" if self.b.dtype != self.a.dtype else ""
        dtype = self._output_dtype()
        text += f",out={dtype}" if dtype else ""
        text += a.fields("a", batch) + b.fields("b", batch)
        if self.out is not None:
            if self.out.shape != self.out_shape:
                raise ValueError(f"out: shape {self.out.shape}, need {self.out_shape}")
            text += _Matrix(self.out).fields("c", batch)
        elif beta:
            raise ValueError("beta: it multiplies what is in out, so out must be given")
        return text + self._more_fields(m, n, activation, beta, math, align)

    def _batch(self, a: _Matrix, b: _Matrix) -> int:
        sizes = {x.batch for x in (a, b) if x.batch is not None and x.batch != 1}
        if len(sizes) > 1:
            raise ValueError(f"a has a batch of {a.batch}, b of {b.batch}; need the same, or 1")
        return sizes.pop() if sizes else 1

    def _output_dtype(self) -> str | None:
        given = None if self.out is None else self.out.dtype
        if given and self.out_dtype and given != self.out_dtype:
            raise TypeError(f"out_dtype: {self.out_dtype}, but out is of {given}")
        return given or self.out_dtype

    def _more_fields(self, m: int, n: int, activation: str | None, beta: bool, math: str, align: int) -> str:
        epilogue = [word for word in ("bias" if self.bias else None, activation) if word]
        text = f",epilogue={'+'.join(epilogue)}" if epilogue else ""
        if self.bias is not None:
            _check_vector(self.bias, n, "n")
        for x in self.d:
            if x.shape != self.out_shape:
                raise ValueError(f"{x.name}: shape {x.shape}, need the output's {self.out_shape}")
        text += f",d={'+'.join(self.d_ops)}" if self.d else ""
        text += ",beta=1" if beta else ""
        if self.scales:
            single = all(_count(x) == 1 for x in self.scales)
            for x, length, letter in zip(self.scales, (m, n), "mn"):
                _check_vector(x, 1 if single else length, "1 value, or " + letter)
                if x.dtype != "fp32":
                    raise TypeError(f"{x.name}: {x.dtype}; need float32")
            text += ",scale=tensor" if single else ",scale=row"
        text += f",math={math}" if math != "strict" else ""
        return text + (f",align={align}" if align != _ALIGN else "")

    def check_against(self, prepared: Prepared) -> None:
        """What is left: types and strides that must be those of the output."""
        given = {"a": self.a, "b": self.b, "c": self.out, "bias": self.bias}
        given.update((f"d{i}", x) for i, x in enumerate(self.d))
        for name, x in given.items():
            if x is not None:
                _check_operand(x, prepared.operands[name])


def _layout_hint(layout: str, k: int, b: _Matrix) -> str:
    if k not in (b.rows, b.columns):
        return ""
    other = layout[0] + ("c" if layout[1] == "r" else "r") + layout[2]
    return f"; b as it is stored fits layout {other!r}"


def _count(x: Operand) -> int:
    return x.shape[0] if len(x.shape) == 1 else 1 if x.shape == () else -1


def _check_vector(x: Operand, length: int, meaning: str) -> None:
    if _count(x) != length:
        raise ValueError(f"{x.name}: shape {x.shape}, need ({length},) ({meaning})")
    if length > 1 and x.strides != (1,):
        raise ValueError(f"{x.name}: its values are {x.strides[0]} apart, need 1; make it contiguous")


# ---- a problem that was prepared by its text -------------------------------------------------------------------------


def _check_operand(x: Operand, spec: OperandSpec) -> None:
    """Whether an array is what a problem asks for."""
    if x.dtype != spec.dtype:
        raise TypeError(f"{x.name}: it is of {x.dtype}, the problem needs {spec.dtype}")
    shape, strides = x.shape, x.strides
    while len(shape) > len(spec.shape) and (shape[0] == 1 or strides[0] == 0):  # one matrix for the whole batch
        shape, strides = shape[1:], strides[1:]
    if shape != spec.shape and not (shape == () and spec.shape == (1,)):
        raise ValueError(f"{x.name}: its shape is {x.shape}, the problem needs {spec.shape}")
    if any(size > 1 and have != need for size, have, need in zip(shape, strides, spec.strides)):
        raise ValueError(f"{x.name}: its strides are {x.strides} elements, the problem needs {spec.strides}")


def _check_all(prepared: Prepared, given: Mapping[str, Any]) -> None:
    for name in prepared.operands:
        if given.get(name) is None and name != "c":
            raise ValueError(f"{name}: the problem {prepared.problem} needs it")
    for name, value in given.items():
        if value is None:
            continue
        x = operand(value, "out" if name == "c" else name)
        if name not in prepared.operands:
            raise ValueError(f"{name}: the problem {prepared.problem} has none")
        if x.device != prepared.device:
            raise ValueError(f"{x.name}: it is on {x.device}, but the problem was prepared for {prepared.device}")
        if name == "c" and not x.writable:
            raise ValueError("out: it is read-only")
        if x.address % prepared.align:
            raise ValueError(f"{x.name}: its address is not a multiple of {prepared.align} bytes, which the problem "
                             "promises (align=)")
        if name == "b" and prepared.packed_b_bytes:
            if x.nbytes < prepared.packed_b_bytes:
                raise ValueError(f"b: {x.nbytes} bytes, but its packed form has {prepared.packed_b_bytes}; use pack_b")
        else:
            _check_operand(x, prepared.operands[name])


def _out_for(prepared: Prepared, a: Any, stream: Any) -> Any:
    spec = prepared.operands["c"]
    step = 1
    for size, stride in zip(reversed(spec.shape), reversed(spec.strides)):
        if stride != step:
            raise ValueError(f"out: the problem's output has strides {spec.strides}; give an array that has them")
        step *= size
    return _make_on_stream(_arrays.maker_like(a, spec.shape, spec.dtype), a, stream)[0]


def call_prepared(prepared: Prepared, a: Any, b: Any, out: Any, bias: Any, d: Any, alpha: float, beta: float,
                  scale_a: Any, scale_b: Any, stream: Any, workspace: Any) -> Any:
    alpha, scale_a, scale_b = _fold_numbers(alpha, scale_a, scale_b)
    if out is None and beta != 0:
        raise ValueError("beta: it multiplies what is in out, so out must be given")
    if beta != 0 and ",beta=1" not in prepared.problem:
        raise ValueError(f"beta: the problem {prepared.problem} has none; add beta=1 to it")
    if out is None:
        out = _out_for(prepared, a, stream)
    address_a, key_a = look(a, "a")
    address_b, key_b = look(b, "b")
    address_c, key_c = look(out, "out")
    more, key_more, bits = _look_at_more(bias, d, scale_a, scale_b)
    bits |= address_a | address_b | address_c | prepared.align
    key = (key_a, key_b, key_c, key_more, bits & -bits)
    if key not in prepared._matching:
        given = {"a": a, "b": b, "c": out, "bias": bias, "scale_a": scale_a, "scale_b": scale_b}
        given.update((f"d{i}", x) for i, x in enumerate(_list_of_d(d)))
        _check_all(prepared, given)
        prepared._matching.add(key)
    if address_c == address_a or address_c == address_b:
        raise ValueError("out: it is also an input, which the kernel still reads while it writes; use another array")
    handle = _handle_for(prepared, a, stream)
    if prepared.workspace_bytes:
        prepared._launch_with_workspace(address_a, address_b, address_c, more, alpha, beta, handle, workspace, a)
    else:
        prepared._launch(address_a, address_b, address_c, more, alpha, beta, handle, None)
    return out


def _handle_for(prepared: Prepared, a: Any, stream: Any) -> int | None:
    if stream is not None:
        return _stream_handle(stream)
    return _current_stream(a, int(prepared.device[5:])) if prepared.device.startswith("cuda:") else None


def pack_b(prepared: Prepared, b: Any, packed: Any, stream: Any) -> Any:
    if not prepared.packed_b_bytes:
        raise ValueError(f"the problem {prepared.problem} takes B as it is; add packed_b=1 to it")
    _check_operand(operand(b, "b"), prepared.operands["b"])
    if packed is None:
        packed = _arrays.maker_like(b, (prepared.packed_b_bytes,), "int8")()[0]
    to = operand(packed, "packed")
    if to.nbytes < prepared.packed_b_bytes or not to.writable:
        raise ValueError(f"packed: need {prepared.packed_b_bytes} writable bytes, not {to.nbytes}")
    prepared._pack(look(b, "b")[0], to.address, _handle_for(prepared, b, stream))
    return packed
