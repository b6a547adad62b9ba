# SPDX-License-Identifier: MIT
"""The C interface through ctypes, and nothing of the Python package: structs, statuses and handles."""
import ctypes
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
OK, UNSUPPORTED, TOOLCHAIN = 0, 3, 4
POINTER = ctypes.c_void_p


class ContextOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("arch", ctypes.c_char_p), ("packs", ctypes.c_char_p),
                ("threads", ctypes.c_int32)]


class SelectOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("strategy", ctypes.c_char_p), ("rule_set", ctypes.c_char_p),
                ("kernel", ctypes.c_char_p), ("top", ctypes.c_int32), ("stream", POINTER), ("registry", POINTER),
                ("rank", POINTER), ("rank_user", POINTER), ("arch", ctypes.c_char_p)]


class Operands(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("a", POINTER), ("b", POINTER), ("c", POINTER), ("bias", POINTER),
                ("d", POINTER * 4), ("scale_a", POINTER), ("scale_b", POINTER), ("workspace", POINTER),
                ("alpha", ctypes.c_float), ("beta", ctypes.c_float)]


class Refused(Exception):
    """A status other than OK, with the library's message."""

    def __init__(self, status, message):
        super().__init__(f"status {status}: {message}")
        self.status = status


def _load():
    library = ctypes.CDLL(str(ROOT / "build" / "lib" / "libtilewise.so"))
    for name in ("tilewise_last_error", "tilewise_plan_kernel", "tilewise_executable_kernel", "tilewise_context_arch"):
        getattr(library, name).restype = ctypes.c_char_p
    for name in ("tilewise_executable_workspace_bytes", "tilewise_executable_packed_b_bytes",
                 "tilewise_plan_candidate_count"):
        getattr(library, name).restype = ctypes.c_int64
    library.tilewise_plan_candidate.argtypes = [POINTER, ctypes.c_int64, POINTER, POINTER]
    library.tilewise_allocate.argtypes = [POINTER, ctypes.c_size_t, POINTER]
    library.tilewise_copy.argtypes = [POINTER, POINTER, POINTER, ctypes.c_size_t, POINTER]
    return library


LIBRARY = _load()


def check(status):
    if status != OK:
        raise Refused(status, LIBRARY.tilewise_last_error().decode(errors="replace"))


def _taken(text):
    value = ctypes.string_at(text.value).decode()
    LIBRARY.tilewise_free(text)
    return value


def build(kernels, jobs):
    """Compiles kernels into the cache; the names of those that did not compile, with the reason."""
    text = ctypes.c_void_p()
    check(LIBRARY.tilewise_build(json.dumps(kernels).encode(), jobs, ctypes.byref(text)))
    rows = json.loads(_taken(text))["kernels"]
    return {row["kernel"]: row["error"]["message"] for row in rows if "error" in row}


def kernels(arch, rule_set):
    """Those of a rule set that there is code for, as dicts of name, config and more."""
    text = ctypes.c_void_p()
    query = json.dumps({"arch": arch, "rule_set": rule_set, "available": True})
    check(LIBRARY.tilewise_kernels(query.encode(), ctypes.byref(text)))
    return json.loads(_taken(text))["kernels"]


class Context:
    """A device that was opened."""

    def __init__(self, device, arch, threads):
        options = ContextOptions(ctypes.sizeof(ContextOptions), arch.encode() if arch else None, None, threads)
        self.handle = POINTER()
        check(LIBRARY.tilewise_context_create(device.encode(), ctypes.byref(options), ctypes.byref(self.handle)))
        self.arch = LIBRARY.tilewise_context_arch(self.handle).decode()

    def close(self):
        LIBRARY.tilewise_context_destroy(self.handle)

    def candidates(self, problem, rule_set=None, kernel=None):
        """The kernels that may run the problem, best first; none is an empty list."""
        options = _choice(kernel, rule_set, None)
        plan = POINTER()
        check(LIBRARY.tilewise_plan_create(self.handle, problem.encode(), ctypes.byref(options), ctypes.byref(plan)))
        names = []
        for i in range(LIBRARY.tilewise_plan_candidate_count(plan)):
            name = ctypes.c_char_p()
            check(LIBRARY.tilewise_plan_candidate(plan, i, ctypes.byref(name), None))
            names.append(name.value.decode())
        LIBRARY.tilewise_plan_destroy(plan)
        return names

    def prepare(self, problem, kernel=None, rule_set=None, strategy=None):
        options = _choice(kernel, rule_set, strategy)
        ready = POINTER()
        check(LIBRARY.tilewise_prepare(self.handle, problem.encode(), ctypes.byref(options), ctypes.byref(ready)))
        return Executable(ready)

    def allocate(self, size):
        memory = POINTER()
        check(LIBRARY.tilewise_allocate(self.handle, size, ctypes.byref(memory)))
        return memory.value

    def release(self, memory):
        check(LIBRARY.tilewise_release(self.handle, POINTER(memory)))

    def copy(self, to, source, size):
        check(LIBRARY.tilewise_copy(self.handle, to, source, size, None))


def _choice(kernel, rule_set, strategy):
    return SelectOptions(ctypes.sizeof(SelectOptions), strategy and strategy.encode(), rule_set and rule_set.encode(),
                         kernel and kernel.encode())


class Executable:
    """A problem made ready; closed with the with statement."""

    def __init__(self, handle):
        self.handle = handle
        self.kernel = LIBRARY.tilewise_executable_kernel(handle).decode()
        self.workspace_bytes = LIBRARY.tilewise_executable_workspace_bytes(handle)
        self.packed_b_bytes = LIBRARY.tilewise_executable_packed_b_bytes(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        LIBRARY.tilewise_executable_destroy(self.handle)

    def run(self, operands):
        check(LIBRARY.tilewise_run(self.handle, ctypes.byref(operands), None))

    def pack_b(self, source, packed):
        check(LIBRARY.tilewise_pack_b(self.handle, POINTER(source), POINTER(packed), None))
