# SPDX-License-Identifier: MIT
"""Memory for operands: on the host between two pages that nobody may touch, on a device exactly as large as the operand.
What lies around and between the elements is poison: NaN in every float type for inputs, a pattern that must stay for outputs."""
import ctypes
import mmap

import numpy as np

POISON, CANARY = 0xff, 0xa5
PAGE = mmap.PAGESIZE
AROUND = 512  # bytes of poison on the side that does not touch a forbidden page
SLOT_BYTES = 64 << 20

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NO_RESERVE = 0x4000


class Placed:
    """Bytes of an operand and some around it; `offset` is where the operand begins in `window`."""

    def __init__(self, window, offset, size, address):
        self.window, self.offset, self.size, self.address = window, offset, size, address
        self.before = None

    def fill(self, byte):
        self.window[:] = byte

    def elements(self, stored, shape, strides):
        width = np.dtype(stored).itemsize
        return np.ndarray(shape, stored, self.window, self.offset, tuple(width * stride for stride in strides))

    def remember(self):
        self.before = self.window.copy()

    def changed(self):
        """The first byte that is not as remembered, from the operand's beginning; None where all are."""
        places = np.flatnonzero(self.window != self.before)
        return int(places[0]) - self.offset if places.size else None


class HostMemory:
    """A slot for each operand, made once: its pages lie between two that end the process when touched."""

    def __init__(self):
        self._slots = {}

    def place(self, name, size, align, at_end):
        base, memory = self._slot(name)
        begin = (SLOT_BYTES - size) // align * align if at_end else 0
        low, high = max(0, begin - AROUND), min(SLOT_BYTES, begin + size + AROUND)
        return Placed(memory[low:high], begin - low, size, base + begin)

    def upload(self, _):
        """The device is the host."""

    download = upload

    def release(self):
        """Slots stay for the next case."""

    def _slot(self, name):
        if name not in self._slots:
            whole = LIBC.mmap(None, SLOT_BYTES + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE,
                              mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE, -1, 0)
            assert whole not in (None, ctypes.c_void_p(-1).value), "no address space"
            for guard in (whole, whole + PAGE + SLOT_BYTES):
                assert LIBC.mprotect(guard, PAGE, 0) == 0
            memory = np.frombuffer((ctypes.c_uint8 * SLOT_BYTES).from_address(whole + PAGE), np.uint8)
            self._slots[name] = whole + PAGE, memory
        return self._slots[name]


class DeviceMemory:
    """Allocations of a context that end with the operand; the emulated device refuses an access beyond them."""

    def __init__(self, context):
        self._context = context
        self._placed = []

    def place(self, _name, size, align, at_end):
        lead = align if at_end else 0
        base = self._context.allocate(lead + size)
        placed = Placed(np.empty(lead + size, np.uint8), lead, size, base + lead)
        self._placed.append(base)
        return placed

    def upload(self, placed):
        self._context.copy(placed.address - placed.offset, placed.window.ctypes.data, placed.window.size)

    def download(self, placed):
        self._context.copy(placed.window.ctypes.data, placed.address - placed.offset, placed.window.size)

    def release(self):
        for base in self._placed:
            self._context.release(base)
        self._placed.clear()
