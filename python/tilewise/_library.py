# SPDX-License-Identifier: MIT
"""Finds and loads libtilewise.so and calls its C API (include/tilewise/tilewise.h).

What is declared there is in _structs.py. Texts, handles and answers become Python values, failures exceptions.
"""
from __future__ import annotations

import ctypes
import json
import operator
import os
import pathlib
from typing import Any

from . import _structs

ABI_VERSION = 1
_NAME = "libtilewise.so"


class TilewiseError(Exception):
    """A call failed. `code` is the library's status code. `message` says what failed, why, and what to do next."""

    def __init__(self, code: int, message: str):
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class CheckFailedError(TilewiseError):
    """A check failed."""


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
TOOLCHAIN = 4
_ERRORS = {1: CheckFailedError, _USAGE: UsageError, 3: UnsupportedError, TOOLCHAIN: ToolchainError, 5: DeviceError}


_AT_SECURE = 23  # of <elf.h>


def has_raised_rights() -> bool:
    """Whether this program may do what the user who started it may not (set-user-ID, set-group-ID, capabilities)."""
    return bool(ctypes.CDLL(None).getauxval(ctypes.c_ulong(_AT_SECURE)))


def variable(name: str) -> str:
    """A variable of the environment that chooses code or where it is kept; with raised rights, as if none were set."""
    return "" if has_raised_rights() else os.environ.get(name, "")


def _find() -> pathlib.Path:
    chosen = variable("TILEWISE_LIBRARY")
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
    try:
        library = ctypes.CDLL(os.fspath(path))
        abi = library.tilewise_abi_version()
        if abi != ABI_VERSION:
            raise ImportError(f"{path} has ABI version {abi}, but this package needs {ABI_VERSION}; "
                              "install the package and the library of the same release")
        for name, (result, arguments) in _structs.FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise ImportError(f"{path} is not a usable tilewise library: {error}") from error
    return library


_library = _load()


def path() -> pathlib.Path:
    """The file that was loaded."""
    return pathlib.Path(_library._name)


def version() -> str:
    text: bytes = _library.tilewise_version()
    return text.decode()


def set_verbose(level: int = 1) -> None:
    """Reports the library's work on standard error. 1: one line for each choice, build, load and run, with its time and reason.
    2: more about choices. 0: nothing. Until you call this, TILEWISE_VERBOSE counts."""
    check("tilewise_set_verbose", whole(level, "level"))


def word(value: Any, name: str) -> str:
    """A text that the caller gave for an argument of this name."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a text, got {type(value).__name__}")
    return value


def whole(value: Any, name: str) -> int:
    """A whole number that the caller gave, of NumPy's types too."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not a whole number") from None


def encode(text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(_USAGE, f"text that is not valid Unicode: {text!r}") from error
    if b"\0" in data:  # C would silently stop reading there
        raise UsageError(_USAGE, f"text with a NUL character: {text!r}")
    return data


def failure(status: int, name: str) -> TilewiseError:
    """The exception for a status other than 0 that the last call of this thread returned."""
    message = (_library.tilewise_last_error() or b"").decode(errors="replace")
    return _ERRORS.get(status, InternalError)(status, message or f"{name} failed with status {status}")


def _convert(value: Any) -> Any:
    return encode(value) if isinstance(value, str) else value


def create(name: str, *arguments: Any) -> int:
    """Calls a function that hands out a handle, and returns the handle or raises a TilewiseError."""
    handle = ctypes.c_void_p()
    status = getattr(_library, name)(*map(_convert, arguments), ctypes.byref(handle))
    if status:
        raise failure(status, name)
    assert handle.value is not None
    return handle.value


def call(name: str, *arguments: Any) -> Any:
    """Calls a function that answers in JSON, and returns the answer or raises a TilewiseError."""
    answer = ctypes.c_void_p()
    status = getattr(_library, name)(*map(_convert, arguments), ctypes.byref(answer))
    try:
        if status:
            raise failure(status, name)
        return json.loads(ctypes.string_at(answer.value or 0))
    finally:
        _library.tilewise_free(answer)


def call_text(name: str, *arguments: Any) -> str:
    """Calls a function that answers with a text, and returns it or raises a TilewiseError."""
    answer = ctypes.c_void_p()
    status = getattr(_library, name)(*map(_convert, arguments), ctypes.byref(answer))
    try:
        if status:
            raise failure(status, name)
        return ctypes.string_at(answer.value or 0).decode()
    finally:
        _library.tilewise_free(answer)


def check(name: str, *arguments: Any) -> None:
    """Calls a function that answers with a status alone, and raises a TilewiseError where it is not 0."""
    status = getattr(_library, name)(*map(_convert, arguments))
    if status:
        raise failure(status, name)


def handle() -> int:
    """The handle of the loaded library, for dlsym."""
    return int(_library._handle)


def function(name: str) -> Any:
    return getattr(_library, name)
