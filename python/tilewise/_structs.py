# SPDX-License-Identifier: MIT
"""The structs and functions of include/tilewise/tilewise.h in the words of ctypes. A test compares them with the header."""
from __future__ import annotations

import ctypes
from typing import Any

_TEXT = ctypes.c_char_p
_POINTER = ctypes.c_void_p
_STATUS = ctypes.c_int
_INT = ctypes.c_int
_LONG = ctypes.c_int64
_OUT = ctypes.POINTER(ctypes.c_void_p)  # also for texts: the pointer itself is needed to free one
_OUT_TEXT = ctypes.POINTER(ctypes.c_char_p)  # a text that belongs to the library
_OUT_LONG = ctypes.POINTER(ctypes.c_int64)
_OUT_DOUBLE = ctypes.POINTER(ctypes.c_double)



def _checked(kind: Any) -> Any:
    """The type of an argument. ctypes by itself passes what is left of a number that is too large."""
    class Checked(kind):  # type: ignore[misc]
        @classmethod
        def from_param(cls, value: Any) -> Any:
            if isinstance(value, int) and kind(value).value != value:
                raise OverflowError(f"{value} does not fit {8 * ctypes.sizeof(kind)} bits")
            return kind.from_param(value)
    return Checked


_GIVEN_INT, _GIVEN_LONG, _GIVEN_SIZE = map(_checked, (ctypes.c_int, ctypes.c_int64, ctypes.c_size_t))

D_TENSORS = 4
_DIMS, _RANK, _DTYPE_CHARS = 3, 6, 8

# A ranking of the caller's: (user, problem, names, predicted microseconds, count, order) -> how many places it wrote.
Rank = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER, _TEXT, ctypes.POINTER(_TEXT), _OUT_DOUBLE, ctypes.c_int32,
                        ctypes.POINTER(ctypes.c_int32))


# Told after each kernel that was compiled: (user, done, total, kernel) -> 0 to go on.
Progress = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER, ctypes.c_int64, ctypes.c_int64, _TEXT)


class Gemm(ctypes.Structure):
    c_name = "tilewise_gemm"
    _fields_ = [("size", ctypes.c_size_t), ("m", _LONG), ("n", _LONG), ("k", _LONG), ("batch", _LONG), ("dtype", _TEXT),
                ("layout", _TEXT), ("options", _TEXT)]


class Conv(ctypes.Structure):
    c_name = "tilewise_conv"
    _fields_ = [("size", ctypes.c_size_t), ("op", _TEXT), ("n", _LONG), ("g", _LONG), ("c", _LONG), ("k", _LONG),
                ("dims", ctypes.c_int32), ("in", _LONG * _DIMS), ("filter", _LONG * _DIMS), ("stride", _LONG * _DIMS),
                ("dilation", _LONG * _DIMS), ("pad_before", _LONG * _DIMS), ("pad_after", _LONG * _DIMS),
                ("dtype", _TEXT), ("layout", _TEXT), ("options", _TEXT)]


class Tensor(ctypes.Structure):
    c_name = "tilewise_tensor"
    _fields_ = [("size", ctypes.c_size_t), ("dtype", ctypes.c_char * _DTYPE_CHARS), ("rank", ctypes.c_int32),
                ("shape", _LONG * _RANK), ("strides", _LONG * _RANK), ("bytes", _LONG)]


class _Options(ctypes.Structure):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, int) and (getattr(self, name) or 0) != value:  # a null pointer is None
            raise OverflowError(f"{name}: {value} does not fit {8 * getattr(type(self), name).size} bits")


class ContextOptions(_Options):
    c_name = "tilewise_context_options"
    _fields_ = [("size", ctypes.c_size_t), ("arch", _TEXT), ("packs", _TEXT), ("threads", ctypes.c_int32)]


class SelectOptions(_Options):
    c_name = "tilewise_select_options"
    _fields_ = [("size", ctypes.c_size_t), ("strategy", _TEXT), ("rule_set", _TEXT), ("kernel", _TEXT),
                ("top", ctypes.c_int32), ("stream", _POINTER), ("registry", _POINTER), ("rank", Rank),
                ("rank_user", _POINTER), ("arch", _TEXT)]


class Operands(ctypes.Structure):
    c_name = "tilewise_operands"
    _fields_ = [("size", ctypes.c_size_t), ("a", _POINTER), ("b", _POINTER), ("c", _POINTER), ("bias", _POINTER),
                ("d", _POINTER * D_TENSORS), ("scale_a", _POINTER), ("scale_b", _POINTER), ("workspace", _POINTER),
                ("alpha", ctypes.c_float), ("beta", ctypes.c_float)]


STRUCTS = (Gemm, Conv, Tensor, ContextOptions, SelectOptions, Operands)
_SELECT = ctypes.POINTER(SelectOptions)

# name: (result, arguments). Operands travel as an address: converting an integer is quicker than a reference.
FUNCTIONS = {
    "tilewise_version": (_TEXT, []),
    "tilewise_abi_version": (_INT, []),
    "tilewise_check_abi": (_STATUS, [_GIVEN_INT]),
    "tilewise_status_name": (_TEXT, [_STATUS]),
    "tilewise_last_error": (_TEXT, []),
    "tilewise_set_verbose": (_STATUS, [_GIVEN_INT]),
    "tilewise_free": (None, [_POINTER]),
    "tilewise_gemm_text": (_STATUS, [ctypes.POINTER(Gemm), _OUT]),
    "tilewise_conv_text": (_STATUS, [ctypes.POINTER(Conv), _OUT]),
    "tilewise_problem_text": (_STATUS, [_TEXT, _OUT]),
    "tilewise_problem_describe": (_STATUS, [_TEXT, _OUT]),
    "tilewise_problem_work": (_STATUS, [_TEXT, _OUT_DOUBLE, _OUT_DOUBLE]),
    "tilewise_problem_operand": (_STATUS, [_TEXT, _TEXT, ctypes.POINTER(Tensor)]),
    "tilewise_kernels": (_STATUS, [_TEXT, _OUT]),
    "tilewise_find_kernel": (_STATUS, [_TEXT, _TEXT, _OUT]),
    "tilewise_check": (_STATUS, [_TEXT, _GIVEN_INT, _OUT]),
    "tilewise_correct": (_STATUS, [_TEXT, _OUT]),
    "tilewise_config_get": (_STATUS, [_TEXT, _TEXT, _OUT]),
    "tilewise_config_set": (_STATUS, [_TEXT, _TEXT, _TEXT, _OUT]),
    "tilewise_archs": (_STATUS, [_TEXT, _OUT]),
    "tilewise_config_fields": (_STATUS, [_OUT]),
    "tilewise_select": (_STATUS, [_TEXT, _TEXT, _OUT]),
    "tilewise_registry_create": (_STATUS, [_TEXT, _OUT]),
    "tilewise_registry_destroy": (None, [_POINTER]),
    "tilewise_registry_add_rule_set": (_STATUS, [_POINTER, _TEXT, _OUT_LONG]),
    "tilewise_registry_add": (_STATUS, [_POINTER, _TEXT, _TEXT, _OUT_LONG]),
    "tilewise_registry_merge": (_STATUS, [_POINTER, _POINTER, _OUT_LONG]),
    "tilewise_registry_import": (_STATUS, [_POINTER, _TEXT, _OUT_LONG]),
    "tilewise_registry_export": (_STATUS, [_POINTER, _GIVEN_INT, _OUT]),
    "tilewise_registry_clear": (_STATUS, [_POINTER]),
    "tilewise_registry_size": (_LONG, [_POINTER]),
    "tilewise_registry_name_at": (_STATUS, [_POINTER, _GIVEN_LONG, _OUT]),
    "tilewise_registry_find": (_STATUS, [_POINTER, _TEXT, _OUT]),
    "tilewise_context_create": (_STATUS, [_TEXT, ctypes.POINTER(ContextOptions), _OUT]),
    "tilewise_context_destroy": (None, [_POINTER]),
    "tilewise_context_arch": (_TEXT, [_POINTER]),
    "tilewise_context_describe": (_STATUS, [_POINTER, _OUT]),
    "tilewise_load_pack": (_STATUS, [_POINTER, _TEXT]),
    "tilewise_load_tuning": (_STATUS, [_POINTER, _TEXT, _OUT_LONG]),
    "tilewise_load_models": (_STATUS, [_POINTER, _TEXT]),
    "tilewise_feature_schema": (_STATUS, [_TEXT, _OUT]),
    "tilewise_features": (_STATUS, [_TEXT, _TEXT, ctypes.POINTER(_TEXT), _GIVEN_LONG, _OUT_DOUBLE, _OUT_DOUBLE]),
    "tilewise_kernel_kind": (_STATUS, [_TEXT, _OUT]),
    "tilewise_predict": (_STATUS, [_TEXT, _OUT_DOUBLE, _GIVEN_LONG, _OUT_DOUBLE]),
    "tilewise_predict_times": (_STATUS, [_TEXT, _TEXT, _TEXT, ctypes.POINTER(_TEXT), _GIVEN_LONG, _OUT_DOUBLE, _OUT_DOUBLE,
                                         _OUT_DOUBLE]),
    "tilewise_allocate": (_STATUS, [_POINTER, _GIVEN_SIZE, _OUT]),
    "tilewise_release": (_STATUS, [_POINTER, _POINTER]),
    "tilewise_copy": (_STATUS, [_POINTER, _POINTER, _POINTER, _GIVEN_SIZE, _POINTER]),
    "tilewise_synchronize": (_STATUS, [_POINTER, _POINTER]),
    "tilewise_plan_create": (_STATUS, [_POINTER, _TEXT, _SELECT, _OUT]),
    "tilewise_plan_destroy": (None, [_POINTER]),
    "tilewise_plan_describe": (_STATUS, [_POINTER, _OUT]),
    "tilewise_plan_kernel": (_TEXT, [_POINTER]),
    "tilewise_plan_source": (_TEXT, [_POINTER]),
    "tilewise_plan_why": (_TEXT, [_POINTER]),
    "tilewise_plan_candidate_count": (_LONG, [_POINTER]),
    "tilewise_plan_candidate": (_STATUS, [_POINTER, _GIVEN_LONG, _OUT_TEXT, _OUT_DOUBLE]),
    "tilewise_plan_rejection_count": (_LONG, [_POINTER]),
    "tilewise_plan_rejection": (_STATUS, [_POINTER, _GIVEN_LONG, _OUT_TEXT, _OUT_TEXT, _OUT_TEXT, _OUT_TEXT]),
    "tilewise_prepare": (_STATUS, [_POINTER, _TEXT, _SELECT, _OUT]),
    "tilewise_plan_prepare": (_STATUS, [_POINTER, _OUT]),
    "tilewise_executable_destroy": (None, [_POINTER]),
    "tilewise_executable_kernel": (_TEXT, [_POINTER]),
    "tilewise_executable_source": (_TEXT, [_POINTER]),
    "tilewise_executable_why": (_TEXT, [_POINTER]),
    "tilewise_executable_workspace_bytes": (_LONG, [_POINTER]),
    "tilewise_executable_packed_b_bytes": (_LONG, [_POINTER]),
    "tilewise_executable_describe": (_STATUS, [_POINTER, _OUT]),
    "tilewise_run": (_STATUS, [_POINTER, _POINTER, _POINTER]),
    "tilewise_pack_b": (_STATUS, [_POINTER, _POINTER, _POINTER, _POINTER]),
    "tilewise_bench": (_STATUS, [_POINTER, _TEXT, _SELECT, _GIVEN_INT, _OUT]),
    "tilewise_build": (_STATUS, [_TEXT, _GIVEN_INT, _OUT]),
    "tilewise_build_extension": (_STATUS, [_TEXT]),
    "tilewise_load_extension": (_STATUS, [_TEXT, _OUT]),
    "tilewise_build_problems": (_STATUS, [_POINTER, _TEXT, _SELECT, _GIVEN_INT, Progress, _POINTER, _OUT]),
    "tilewise_validate": (_STATUS, [_POINTER, _TEXT, _SELECT, _OUT]),
}
