# SPDX-License-Identifier: MIT
"""The structs and functions of include/tilewise/tilewise.h in the words of ctypes. A test compares them with the header."""
from __future__ import annotations

import ctypes

_TEXT = ctypes.c_char_p
_POINTER = ctypes.c_void_p
_STATUS = ctypes.c_int
_OUT = ctypes.POINTER(ctypes.c_void_p)  # also for texts: the pointer itself is needed to free one

D_TENSORS = 4


class ContextOptions(ctypes.Structure):
    c_name = "tilewise_context_options"
    _fields_ = [("size", ctypes.c_size_t), ("arch", _TEXT), ("packs", _TEXT), ("threads", ctypes.c_int32)]


class SelectOptions(ctypes.Structure):
    c_name = "tilewise_select_options"
    _fields_ = [("size", ctypes.c_size_t), ("strategy", _TEXT), ("rule_set", _TEXT), ("kernel", _TEXT),
                ("top", ctypes.c_int32), ("stream", _POINTER)]


class Operands(ctypes.Structure):
    c_name = "tilewise_operands"
    _fields_ = [("size", ctypes.c_size_t), ("a", _POINTER), ("b", _POINTER), ("c", _POINTER), ("bias", _POINTER),
                ("d", _POINTER * D_TENSORS), ("scale_a", _POINTER), ("scale_b", _POINTER), ("workspace", _POINTER),
                ("alpha", ctypes.c_float), ("beta", ctypes.c_float)]


STRUCTS = (ContextOptions, SelectOptions, Operands)

# name: (result, arguments). Operands travel as an address: converting an integer is quicker than a reference.
FUNCTIONS = {
    "tilewise_version": (_TEXT, []),
    "tilewise_abi_version": (ctypes.c_int, []),
    "tilewise_last_error": (_TEXT, []),
    "tilewise_kernels": (_STATUS, [_TEXT, _OUT]),
    "tilewise_select": (_STATUS, [_TEXT, _TEXT, _OUT]),
    "tilewise_check": (_STATUS, [_TEXT, ctypes.c_int, _OUT]),
    "tilewise_free": (None, [_POINTER]),
    "tilewise_context_create": (_STATUS, [_TEXT, ctypes.POINTER(ContextOptions), _OUT]),
    "tilewise_context_destroy": (None, [_POINTER]),
    "tilewise_prepare": (_STATUS, [_POINTER, _TEXT, ctypes.POINTER(SelectOptions), _OUT]),
    "tilewise_executable_destroy": (None, [_POINTER]),
    "tilewise_executable_kernel": (_TEXT, [_POINTER]),
    "tilewise_executable_source": (_TEXT, [_POINTER]),
    "tilewise_executable_why": (_TEXT, [_POINTER]),
    "tilewise_executable_workspace_bytes": (ctypes.c_int64, [_POINTER]),
    "tilewise_executable_packed_b_bytes": (ctypes.c_int64, [_POINTER]),
    "tilewise_executable_describe": (_STATUS, [_POINTER, _OUT]),
    "tilewise_run": (_STATUS, [_POINTER, _POINTER, _POINTER]),
    "tilewise_pack_b": (_STATUS, [_POINTER, _POINTER, _POINTER, _POINTER]),
    "tilewise_bench": (_STATUS, [_POINTER, _TEXT, ctypes.POINTER(SelectOptions), ctypes.c_int, _OUT]),
}
