# SPDX-License-Identifier: MIT
"""Arrays of other libraries as operands: NumPy arrays, torch tensors, anything with __dlpack__. Nothing is copied, and no
library is imported that the caller has not imported.

A repeated call must be quick, so there are two views of an array. look(x) gives (address, key): the key says all that
matters for choosing a kernel and is only compared. operand(x) spells the same out, for the first call and for messages.
"""
from __future__ import annotations

import ctypes
import dataclasses
import json
import numbers
import sys
from collections.abc import Callable, Mapping
from typing import Any

from . import _dlpack
from ._devices import name_of_torch

# Other libraries call the element types so.
DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "bf8",
          "int8": "int8", "int32": "int32"}
_NAMES = {ours: theirs for theirs, ours in DTYPES.items()}

# Bytes that every pointer is a multiple of unless a problem's text says otherwise; more is never asked of one.
DEFAULT_ALIGN = 16

Look = Callable[[Any], "tuple[int, Any]"]
Maker = Callable[[], "tuple[Any, int]"]


@dataclasses.dataclass(frozen=True)
class Operand:
    """An array spelled out: type in the library's words, shape, strides in elements, device ("cpu", "cuda:0", "hip:0")."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    writable: bool
    address: int
    nbytes: int


def dtype_name(dtype: Any) -> str:
    """The library's word for an element type: given in its own words, or as a type of NumPy, ml_dtypes or torch."""
    if isinstance(dtype, str) and dtype in _NAMES:
        return dtype
    text = str(dtype).removeprefix("torch.")
    numpy = sys.modules.get("numpy")
    if text not in DTYPES and numpy is not None:
        try:
            text = numpy.dtype(dtype).name
        except (TypeError, ValueError):
            pass
    if text not in DTYPES:
        raise TypeError(f"dtype {dtype!r} is not supported; use one of {', '.join(DTYPES)}")
    return DTYPES[text]


def json_text(values: Mapping[str, Any]) -> str:
    """Values as JSON, whole numbers of NumPy and element types of other libraries too."""
    return json.dumps(dict(values), default=lambda value: int(value) if isinstance(value, numbers.Integral) else dtype_name(value))


# ---- NumPy -----------------------------------------------------------------------------------------------------------


def _numpy_look() -> Look:
    """x.ctypes.data takes longer than the rest of a call. The address is the first field of an array's struct, after the
    head that every object has: the macros of NumPy's C API have that place compiled into every extension, so it stays. A
    trial shows whether it holds for this interpreter."""
    read, head = ctypes.c_size_t.from_address, object.__basicsize__

    def look(x: Any) -> tuple[int, Any]:
        return read(id(x) + head).value, (x.dtype, x.shape, x.strides, x.flags.writeable)

    def look_safely(x: Any) -> tuple[int, Any]:
        return x.ctypes.data, (x.dtype, x.shape, x.strides, x.flags.writeable)

    trial = sys.modules["numpy"].zeros((2, 3))[1:, 1:]
    return look if sys.implementation.name == "cpython" and look(trial) == look_safely(trial) else look_safely


def _refuse_more_than_memory(x: Any, name: str) -> None:
    """An array whose meaning is not in its memory alone is never looked at: its type is not kept in LOOKS, so that this is
    asked at every call."""
    kind = type(x)
    if hasattr(kind, "mask"):
        raise TypeError(f"{name}: masked arrays are not supported; use {name}.filled(value)")
    plain = sys.modules["numpy"].ndarray
    if kind.__array_ufunc__ is not plain.__array_ufunc__ or kind.__array_function__ is not plain.__array_function__:
        raise TypeError(f"{name}: a {kind.__name__} computes in its own way; if its memory alone is meant, use "
                        f"{name}.view(numpy.ndarray)")


def _operand_numpy(x: Any, name: str) -> Operand:
    if not x.dtype.isnative:
        raise TypeError(f"{name}: its bytes are in the order of another machine; "
                        f"use {name}.astype({name}.dtype.newbyteorder('='))")
    size = x.dtype.itemsize
    if any(stride % size for stride in x.strides):
        raise ValueError(f"{name}: strides of {x.strides} bytes are no multiples of the element's {size}; "
                         "use numpy.ascontiguousarray")
    return Operand(name, _dtype_of(x, name), x.shape, tuple(stride // size for stride in x.strides), "cpu",
                   x.flags.writeable, x.ctypes.data, x.nbytes)


def numpy_dtype(dtype: str) -> Any:
    """NumPy's type for the library's word. NumPy must have been imported."""
    numpy = sys.modules["numpy"]
    name = _NAMES[dtype]
    if hasattr(numpy, name):
        return numpy.dtype(name)
    import ml_dtypes  # asked for by name, or there would be no such input
    return numpy.dtype(getattr(ml_dtypes, name))


def _maker_numpy(shape: tuple[int, ...], dtype: str, align: int) -> Maker:
    numpy = sys.modules["numpy"]
    element = numpy_dtype(dtype)
    look = _numpy_look()
    empty = numpy.empty

    def make() -> tuple[Any, int]:
        made = empty(shape, element)
        address = look(made)[0]
        return (made, address) if address % align == 0 else make_aligned(made.nbytes)

    def make_aligned(nbytes: int) -> tuple[Any, int]:  # an unusual allocator, or more than any gives
        room = numpy.empty(nbytes + align, numpy.uint8)
        skip = -room.ctypes.data % align
        made = room[skip:skip + nbytes].view(element).reshape(shape)
        return made, made.ctypes.data

    return make


# ---- torch -----------------------------------------------------------------------------------------------------------


def _torch_look() -> Look:
    grad_enabled, threads = sys.modules["torch"].is_grad_enabled, sys.modules["torch"].get_num_threads

    def look(x: Any) -> tuple[int, Any]:
        try:
            return x.data_ptr(), (x.dtype, x.shape, x.stride(), x.device, x.requires_grad and grad_enabled(), x.is_neg(),
                                  x.is_cpu and threads())
        except RuntimeError as error:
            raise TypeError(f"a tensor of layout {x.layout} on {x.device} has no plain memory; use .to_dense()") from error

    return look


def _refuse_wrapper(x: Any, name: str) -> None:
    """As for NumPy: tensors that stand for others, and may be masked, sharded or not there yet."""
    kind = type(x)
    if kind.__torch_dispatch__ is not sys.modules["torch"].Tensor.__torch_dispatch__:
        raise TypeError(f"{name}: a {kind.__name__} computes in its own way; give the plain tensor that it stands for")


def _operand_torch(x: Any, name: str) -> Operand:
    torch = sys.modules["torch"]
    if x.layout != torch.strided:
        raise TypeError(f"{name}: a tensor of layout {x.layout} is not supported; use {name}.to_dense()")
    if x.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name}: device {x.device} is not supported; use cpu or cuda")
    if x.is_neg():
        raise TypeError(f"{name}: its memory holds the negative of its values; use {name}.resolve_neg()")
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name}: it requires a gradient, and gradients are not recorded here; "
                         f"use {name}.detach(), or call under torch.no_grad()")
    return Operand(name, _dtype_of(x, name), tuple(x.shape), tuple(x.stride()), name_of_torch(x.device), True, x.data_ptr(),
                   x.numel() * x.element_size())


def _maker_torch(shape: tuple[int, ...], dtype: str, device: Any) -> Maker:
    torch = sys.modules["torch"]
    element = getattr(torch, _NAMES[dtype])
    empty = torch.empty

    def make() -> tuple[Any, int]:  # every allocator of torch gives 64 bytes or more
        made = empty(shape, dtype=element, device=device)
        return made, made.data_ptr()

    return make


# ---- DLPack ----------------------------------------------------------------------------------------------------------


def _look_dlpack(x: Any) -> tuple[int, Any]:
    view = _dlpack.view_of(x)
    return view.address, (view.dtype, view.shape, view.strides, view.device, view.writable)


def _operand_dlpack(x: Any, name: str) -> Operand:
    view = _dlpack.view_of(x)
    if view.dtype not in DTYPES:
        raise TypeError(f"{name}: dtype {view.dtype} is not supported; use one of {', '.join(DTYPES)}")
    return Operand(name, DTYPES[view.dtype], view.shape, view.strides, view.device, view.writable, view.address,
                   view.nbytes)


# ---- which of them ---------------------------------------------------------------------------------------------------


def _dtype_of(x: Any, name: str) -> str:
    try:
        return dtype_name(x.dtype)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def is_numpy(x: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray)


def is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


LOOKS: dict[type, Look] = {}  # by type, filled as types are met


def look_of(x: Any, name: str) -> Look:
    """The quick view for x's type; later calls find it in LOOKS. A TypeError for what is more than its memory."""
    if is_torch(x):
        _refuse_wrapper(x, name)
        look = _torch_look()
    elif is_numpy(x):
        _refuse_more_than_memory(x, name)
        look = _numpy_look()
    elif hasattr(x, "__dlpack__"):
        look = _look_dlpack
    else:
        raise TypeError(f"{name}: expected a NumPy array, a torch tensor or an object with __dlpack__, "
                        f"got {type(x).__name__}")
    LOOKS[type(x)] = look
    return look


def look(x: Any, name: str) -> tuple[int, Any]:
    return (LOOKS.get(type(x)) or look_of(x, name))(x)


def operand(x: Any, name: str) -> Operand:
    look_of(x, name)
    if is_torch(x):
        return _operand_torch(x, name)
    return _operand_numpy(x, name) if is_numpy(x) else _operand_dlpack(x, name)


def memory(x: Any, name: str) -> Operand:
    """An array as bytes without gaps: of any type, which is left empty."""
    look_of(x, name)
    if is_torch(x):
        contiguous, device = x.is_contiguous(), name_of_torch(x.device)
        writable, address, nbytes = True, x.data_ptr(), x.numel() * x.element_size()
    elif is_numpy(x):
        contiguous, device = x.flags.c_contiguous, "cpu"
        writable, address, nbytes = x.flags.writeable, x.ctypes.data, x.nbytes
    else:
        view = _dlpack.view_of(x)
        contiguous, device = view.strides == _dlpack.packed(view.shape), view.device
        writable, address, nbytes = view.writable, view.address, view.nbytes
    if not contiguous:
        raise ValueError(f"{name}: it has gaps; give a contiguous array")
    return Operand(name, "", (nbytes,), (1,), device, writable, address, nbytes)


def maker_like(x: Any, shape: tuple[int, ...], dtype: str, align: int = DEFAULT_ALIGN) -> Maker:
    """Makes uninitialised arrays of x's library and device, each with its address, which in NumPy is a multiple of `align`."""
    if is_torch(x):
        return _maker_torch(shape, dtype, x.device)
    if is_numpy(x):
        return _maker_numpy(shape, dtype, max(align, DEFAULT_ALIGN))
    raise ValueError(f"out: a {type(x).__name__} cannot be made here; give out=, a writable array")
