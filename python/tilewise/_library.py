# SPDX-License-Identifier: MIT
"""Finds and loads libtilewise.so and calls its C API (include/tilewise/tilewise.h).

Everything that knows about ctypes is here; the rest of the package sees Python values and exceptions.
"""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
from typing import Any

ABI_VERSION = 1
_NAME = "libtilewise.so"


class TilewiseError(Exception):
    """A call that failed: `code` is the library's status code, `message` says what, why and what to do next."""

    def __init__(self, code: int, message: str):
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class CheckFailedError(TilewiseError):
    """A check was made and did not hold."""


class UsageError(TilewiseError):
    """The input is malformed: an unknown name, a missing field, a value out of range."""


class UnsupportedError(TilewiseError):
    """The input is well formed, but no kernel can do it."""


class ToolchainError(TilewiseError):
    """A compiler is missing or failed."""


class DeviceError(TilewiseError):
    """A device is missing or failed."""


class InternalError(TilewiseError):
    """A fault of the library itself."""


# The status codes of tilewise.h; one that is not here is a fault.
_USAGE = 2
_ERRORS = {1: CheckFailedError, _USAGE: UsageError, 3: UnsupportedError, 4: ToolchainError, 5: DeviceError}


def _find() -> pathlib.Path:
    chosen = os.environ.get("TILEWISE_LIBRARY")
    if chosen:  # asked for by name: nothing else is taken in its place
        if not os.path.isfile(chosen):
            raise ImportError(f"TILEWISE_LIBRARY is {chosen!r}, which is not a file; correct or unset it")
        return pathlib.Path(chosen).absolute()
    package = pathlib.Path(__file__).resolve().parent
    places = [package / "lib" / _NAME, package.parents[1] / "build" / "lib" / _NAME]
    for place in places:
        if place.is_file():
            return place
    tried = "\n".join(f"  {place}" for place in places)
    raise ImportError(f"{_NAME} was not found. Tried:\n  $TILEWISE_LIBRARY (not set)\n{tried}\n"
                      "Build it with `make build` in a source checkout, or install the package with `pip install .`")


def _load() -> ctypes.CDLL:
    path = _find()
    text = ctypes.c_char_p
    out = ctypes.POINTER(ctypes.c_void_p)  # not c_char_p: the pointer itself is needed to free the text
    try:
        library = ctypes.CDLL(os.fspath(path))
        library.tilewise_abi_version.restype = ctypes.c_int
        library.tilewise_abi_version.argtypes = []
        abi = library.tilewise_abi_version()
        if abi != ABI_VERSION:
            raise ImportError(f"{path} has ABI version {abi}, but this package needs {ABI_VERSION}; "
                              "install the package and the library of the same release")
        for name, result, arguments in (
            ("tilewise_version", text, []),
            ("tilewise_last_error", text, []),
            ("tilewise_kernels", ctypes.c_int, [text, out]),
            ("tilewise_select", ctypes.c_int, [text, text, out]),
            ("tilewise_check", ctypes.c_int, [text, ctypes.c_int, out]),
            ("tilewise_free", None, [ctypes.c_void_p]),
        ):
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise ImportError(f"{path} is not a usable tilewise library: {error}") from error
    return library


_library = _load()


def version() -> str:
    return _library.tilewise_version().decode()


def _encode(text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(_USAGE, f"text that is not valid Unicode: {text!r}") from error
    if b"\0" in data:  # C would silently stop reading there
        raise UsageError(_USAGE, f"text with a NUL character: {text!r}")
    return data


def call(name: str, *arguments: str | int) -> Any:
    """Calls a function that answers in JSON, and returns the answer or raises a TilewiseError."""
    answer = ctypes.c_void_p()
    values = [_encode(value) if isinstance(value, str) else value for value in arguments]
    status = getattr(_library, name)(*values, ctypes.byref(answer))
    try:
        if status:
            message = (_library.tilewise_last_error() or b"").decode(errors="replace")
            raise _ERRORS.get(status, InternalError)(status, message or f"{name} failed with status {status}")
        return json.loads(ctypes.string_at(answer.value))
    finally:
        _library.tilewise_free(answer)
