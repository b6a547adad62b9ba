# SPDX-License-Identifier: MIT
"""The operands of one call of tilewise.gemm or of a prepared problem: the optional ones, the stream, the
output, and whether an array is what a problem asks for.
"""
from __future__ import annotations

import numbers
import sys
from collections.abc import Sequence
from typing import Any

from . import _arrays, _dlpack, _structs
from ._arrays import Operand, look
from ._answers import OperandSpec
from ._devices import gpu_index, name_of_torch

SINGLE = ((), (1,))  # shapes of a single value, which is read alone, so that its alignment does not matter


def fold_numbers(alpha: float, scale_a: Any, scale_b: Any) -> tuple[float, Any, Any]:
    """Scales that are numbers become a part of alpha."""
    if isinstance(scale_a, numbers.Real):
        alpha, scale_a = alpha * float(scale_a), None
    if isinstance(scale_b, numbers.Real):
        alpha, scale_b = alpha * float(scale_b), None
    return alpha, scale_a, scale_b


def list_of_d(d: Any) -> Sequence[Any]:
    if d is None:
        return ()
    return d if isinstance(d, (list, tuple)) else (d,)


def d_ops_text(d_op: str | Sequence[str]) -> str:
    """How the arrays of d are combined, joined by +."""
    if isinstance(d_op, str):
        return d_op
    try:
        return "+".join(d_op)
    except TypeError:
        raise TypeError(f"d_op: expected add, mul or a list of them, got {d_op!r}") from None


def look_at_more(bias: Any, d: Any, scale_a: Any, scale_b: Any) -> tuple[Any, Any, int]:
    """Addresses, key and alignment bits of the operands that not every product has."""
    bits = 0
    addresses: list[int | None] = []
    keys: list[Any] = []
    ds = list_of_d(d)
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
        if key[1] not in SINGLE:
            bits |= address
    return (addresses[0], addresses[1:-2], addresses[-2], addresses[-1]), tuple(keys), bits


def stream_handle(stream: Any, device: str) -> int:
    handle = getattr(stream, "cuda_stream", stream)
    if not isinstance(handle, int):
        raise TypeError(f"stream: expected an integer handle or an object with .cuda_stream, got {type(stream).__name__}")
    if gpu_index(device) < 0:
        raise ValueError(f"stream: {device} has no streams, a call returns when the result is there; leave stream= out")
    return handle


def current_stream(a: Any, index: int) -> int | None:
    return torch_stream(index) if _arrays.is_torch(a) else None


def torch_stream(index: int) -> int:
    """The stream that torch, which is imported, uses on a GPU now."""
    torch = sys.modules["torch"]
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    handle: int = quick(index) if quick else torch.cuda.current_stream(index).cuda_stream
    return handle


def make_on_stream(make: _arrays.Maker, a: Any, stream: Any) -> tuple[Any, int]:
    """Memory of a GPU belongs to the stream it is made on, which must be the one that writes it."""
    if stream is None or not _arrays.is_torch(a) or a.device.type != "cuda":
        return make()
    torch = sys.modules["torch"]
    if not isinstance(stream, torch.cuda.Stream):
        handle = stream_handle(stream, name_of_torch(a.device))
        # torch takes the handle 0 for "none given" and would hand out another stream.
        stream = (torch.cuda.ExternalStream(handle, device=a.device) if handle else
                  torch.cuda.default_stream(a.device))
    with torch.cuda.stream(stream):
        return make()


def check_operand(x: Operand, spec: OperandSpec, problem: str = "") -> None:
    """Whether an array is what a problem asks for."""
    asked = f": {problem}" if problem else ""
    if x.dtype != spec.dtype:
        raise TypeError(f"{x.name}: it is of {x.dtype}, the problem needs {spec.dtype}{asked}")
    shape, strides, is_empty = x.shape, x.strides, 0 in x.shape  # strides of nothing mean nothing
    while len(shape) > len(spec.shape) and (shape[0] == 1 or strides[0] == 0 or is_empty):  # one matrix for the whole batch
        shape, strides = shape[1:], strides[1:]
    if shape != spec.shape and not (shape == () and spec.shape == (1,)):
        raise ValueError(f"{x.name}: its shape is {x.shape}, the problem needs {spec.shape}{asked}")
    if not is_empty and any(size > 1 and have != need for size, have, need in zip(shape, strides, spec.strides)):
        hint = ""
        if spec.strides == _dlpack.packed(spec.shape):
            hint = "; make it contiguous (numpy.ascontiguousarray, .contiguous() in torch)"
        raise ValueError(f"{x.name}: its strides are {x.strides} elements, the problem needs {spec.strides}{hint}{asked}")
