# SPDX-License-Identifier: MIT
"""A client of the original's convolution libraries: ctypes, no argtypes, int results but for texts and times, and memory of
the device. conv_ctypes.py CONV_LIBRARY BWDW_LIBRARY.
"""
import ctypes
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "common"))

from conv_reference import backward_weight, forward

FIELDS = ("N G C K input_d input_h input_w filter_z filter_y filter_x stride_d stride_h stride_w pad_d pad_h pad_w "
          "dilation_d dilation_h dilation_w").split()
SIZES = dict(N=1, G=2, C=16, K=16, input_d=1, input_h=5, input_w=6, filter_z=1, filter_y=3, filter_x=3, stride_d=1,
             stride_h=1, stride_w=1, pad_d=0, pad_h=1, pad_w=1, dilation_d=1, dilation_h=1, dilation_w=1)


class ConvProblemC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in [*FIELDS, "direction", "split_k"]]


class ConvBwdwProblemC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in [*FIELDS, "split_k"]]


class Memory:
    """An array's memory on the device: its own, or on a GPU a copy that torch makes."""

    def __init__(self, array):
        self.array, self.copy = array, None
        if os.environ.get("TILEWISE_COMPAT_DEVICE", "").startswith("cuda"):
            import torch
            self.copy = torch.from_numpy(array).cuda()

    @property
    def pointer(self):
        return ctypes.c_void_p(self.array.ctypes.data if self.copy is None else self.copy.data_ptr())

    def host(self):
        return self.array if self.copy is None else self.copy.cpu().numpy()


rng = np.random.default_rng(0)
x, w, y = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((1, 5, 6, 2, 8), (2, 8, 3, 3, 8), (1, 5, 6, 2, 8)))

lib = ctypes.CDLL(sys.argv[1])
lib.conv_dispatcher_version.restype = ctypes.c_char_p
lib.conv_dispatcher_run.restype = ctypes.c_float
assert lib.conv_dispatcher_init() == 0 and lib.conv_dispatcher_version() == b"2.0.0"
assert lib.conv_dispatcher_has_kernels() == lib.conv_dispatcher_has_bwd_data() == lib.conv_dispatcher_has_bwd_weight() == 1
name = ctypes.create_string_buffer(256)
assert lib.conv_dispatcher_get_kernel_count() > 0 and lib.conv_dispatcher_get_kernel_name(0, name, 256) == 0
problem = ConvProblemC(**SIZES, direction=0, split_k=1)
assert lib.conv_dispatcher_is_supported(ctypes.byref(problem)) == 1
impossible = ConvProblemC(**{**SIZES, "C": 5}, direction=0, split_k=1)
assert lib.conv_dispatcher_is_supported(ctypes.byref(impossible)) == 0
assert lib.conv_dispatcher_select_kernel(ctypes.byref(problem), name, 256) == 0 and name.value
on_x, on_w, on_y, out = Memory(x), Memory(w), Memory(y), Memory(np.full_like(y, np.nan))
time_ms = lib.conv_dispatcher_run(on_x.pointer, on_w.pointer, out.pointer, ctypes.byref(problem), None)
assert time_ms > 0, time_ms
np.testing.assert_allclose(out.host().astype(np.float64), forward(x, w, 1, 1), rtol=0, atol=4e-2)
assert lib.conv_dispatcher_cleanup() == 0

lib = ctypes.CDLL(sys.argv[2])
lib.conv_bwdw_run.restype = ctypes.c_float
assert lib.conv_bwdw_init() == 0 and lib.conv_bwdw_has_kernels() == 1 and lib.conv_bwdw_get_kernel_count() > 0
problem = ConvBwdwProblemC(**SIZES, split_k=1)
out = Memory(np.full_like(w, np.nan))
time_ms = lib.conv_bwdw_run(on_x.pointer, on_y.pointer, out.pointer, ctypes.byref(problem), None)
assert time_ms > 0, time_ms
np.testing.assert_allclose(out.host().astype(np.float64), backward_weight(x, y, (3, 3), 1, 1), rtol=0, atol=4e-2)
lib.conv_bwdw_cleanup()
print("PASS")
