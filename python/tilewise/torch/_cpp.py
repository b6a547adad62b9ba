# SPDX-License-Identifier: MIT
"""The C++ ops: csrc/ops.cpp compiled once against the torch that is imported, kept in the cache of kernels, and registered
over the Python ops, which serve until then, or for good where there is no compiler.

TILEWISE_TORCH_CPP=0 leaves the ops to Python, "wait" makes the import wait for the compiler; otherwise it runs in the
background. Messages go to the logger "tilewise.torch".
"""
from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

import torch

from .. import _library, _runtime, _warm
from .._devices import torch_gpu

_VARIABLE = "TILEWISE_TORCH_CPP"
_MODES = ("0", "1", "wait")
_HERE = pathlib.Path(__file__).resolve().parent
_NOT_COMPILED = _library.CheckFailedError

_log = logging.getLogger("tilewise.torch")
_lock = threading.Lock()
_library_of_ops: ctypes.CDLL | None = None  # once it is loaded
_when_loaded: list[Callable[[], None]] = []


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
def _context_of(device: bytes, threads: int) -> int | None:
    """For the ops in C++: the context that Python uses as well. Nothing may be raised here; they find out why."""
    try:
        return _runtime.context(device.decode(), threads)
    except _library.TilewiseError:
        return None


def _include() -> pathlib.Path:
    """Where tilewise/tilewise.h is: in the package, or in the checkout that it is a part of."""
    inside = _HERE.parent / "include"
    return inside if inside.is_dir() else _HERE.parents[2] / "include"


def _request() -> str:
    """What tilewise.h calls a request: it names all that decides what the code does."""
    place, include, sources = pathlib.Path(torch.__file__).resolve().parent, _include(), _HERE / "csrc"
    digest = hashlib.sha256()
    for path in (*sorted(sources.iterdir()), include / "tilewise" / "tilewise.h"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    source = (f"// torch {torch.__version__} {torch.version.git_version}, tilewise ABI {_library.ABI_VERSION}, "
              f"sources {digest.hexdigest()}\n#define TILEWISE_TORCH_GPU \"{torch_gpu()}\"\n#include \"ops.cpp\"\n")
    headers = place / "include"
    flags = [f"-I{sources}", f"-I{include}", "-isystem", f"{headers}", "-isystem",
             f"{headers / 'torch' / 'csrc' / 'api' / 'include'}",
             f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", f"-L{place / 'lib'}", "-ltorch_cpu", "-lc10",
             "-Wl,-z,defs"]
    return json.dumps({"name": f"the C++ ops for torch {torch.__version__}", "source": source, "flags": flags})


def _load(request: str) -> None:
    """Loads what is compiled and registers it. Python's lock is held all the while (PyDLL), so that no call of another thread
    meets ops that are half of them Python's."""
    global _library_of_ops
    with _lock:
        if _library_of_ops is not None:
            return
        handle = _library.create("tilewise_load_extension", request)
        library = ctypes.PyDLL("tilewise_torch", handle=handle)
        start = library.tilewise_torch_start
        start.restype, start.argtypes = ctypes.c_char_p, [ctypes.c_void_p, type(_context_of)]
        failure = start(_library.handle(), _context_of)
        if failure:
            raise _library.ToolchainError(_library.TOOLCHAIN, failure.decode(errors="replace"))
        library.tilewise_torch_plans.restype = ctypes.c_size_t
        library.tilewise_torch_forget_plans.restype = None
        library.tilewise_torch_geometry.restype = ctypes.c_int64
        library.tilewise_torch_geometry.argtypes = [ctypes.c_size_t, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64]
        _library_of_ops = library
        for action in _when_loaded:
            action()


def when_loaded(action: Callable[[], None]) -> None:
    """Has something done once the ops run in C++."""
    with _lock:
        _when_loaded.append(action)
        if _library_of_ops is not None:
            action()


def number_of(dims: int, numbers: Sequence[int], groups: int) -> int:
    """What tilewise::_conv calls a geometry; -1 where there is no number left."""
    assert _library_of_ops is not None
    return int(_library_of_ops.tilewise_torch_geometry(dims, (ctypes.c_int64 * len(numbers))(*numbers), groups))


def is_loaded() -> bool:
    """Whether the ops run in C++."""
    return _library_of_ops is not None


def plan_count() -> int:
    """How many prepared problems the C++ ops keep in this process."""
    return 0 if _library_of_ops is None else int(_library_of_ops.tilewise_torch_plans())


def forget_plans() -> None:
    """Has the C++ ops choose their kernels anew, after some were measured."""
    if _library_of_ops is not None:
        _library_of_ops.tilewise_torch_forget_plans()


_warm.when_tuned.append(forget_plans)


def build_ops() -> None:
    """Compiles the C++ ops now, unless that was done before, and has them serve. Raises a tilewise.Error where that fails; one
    that failed before is tried again."""
    request = _request()
    _library.check("tilewise_build_extension", request)
    _load(request)


def _give_up(why: Exception | str) -> None:
    _log.warning("tilewise.torch: the ops stay in Python, so that calls cost more: %s. tilewise.torch.build_ops() tries again; "
                 "%s=0 turns this message off", str(why).rstrip(". \n"), _VARIABLE)


# A process of its own, so that a program that ends sooner does not end the compiler, and the next one finds the ops.
_CHILD = """
import sys
from tilewise import _library
try:
    _library.check("tilewise_build_extension", sys.stdin.read())
except _library.TilewiseError as error:
    sys.exit(error.message)
"""


def _build_in_background(request: str) -> None:
    path = os.pathsep.join(filter(None, (os.fspath(_HERE.parents[1]), os.environ.get("PYTHONPATH"))))
    try:
        child = subprocess.Popen([sys.executable or "python3", "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True,
                                 env={**os.environ, "PYTHONPATH": path})
        message = child.communicate(request)[1]
        if child.returncode:
            raise _library.ToolchainError(_library.TOOLCHAIN, message)
        _load(request)
    except (OSError, _library.TilewiseError) as error:
        _give_up(error)


def start() -> None:
    """Has the C++ ops serve if they are compiled; otherwise begins to compile them. Called by the import."""
    mode = _library.variable(_VARIABLE) or "1"
    if mode not in _MODES:
        raise ImportError(f"{_VARIABLE} is {mode!r}; need one of {', '.join(_MODES)}")
    if mode == "0" or _library.has_raised_rights():
        return
    request = _request()
    try:
        _load(request)
    except _NOT_COMPILED:
        _log.warning("tilewise.torch: compiling its C++ ops for torch %s, once (about 20 s)%s; %s=0 turns this off",
                     torch.__version__, "" if mode == "wait" else "; the Python ops serve meanwhile", _VARIABLE)
        if mode == "1":
            threading.Thread(target=_build_in_background, args=(request,), name="tilewise.torch", daemon=True).start()
            return
        try:
            build_ops()
        except _library.TilewiseError as error:
            _give_up(error)
    except _library.TilewiseError as error:
        _give_up(error)
