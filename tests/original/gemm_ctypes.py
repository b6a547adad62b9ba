# SPDX-License-Identifier: MIT
"""A client of the original's GEMM library: ctypes, no argtypes, int results but for texts. gemm_ctypes.py LIBRARY."""
import ctypes
import sys

import numpy as np

lib = ctypes.CDLL(sys.argv[1])
lib.dispatcher_get_kernel_name.restype = ctypes.c_char_p
lib.dispatcher_export_registry_json.restype = ctypes.c_char_p

M, N, K = 32, 24, 40
assert lib.dispatcher_init() == 0
assert lib.dispatcher_get_kernel_count() > 0
assert lib.dispatcher_is_supported(M, N, K) == 1 and lib.dispatcher_is_supported(0, N, K) == 0
name = ctypes.create_string_buffer(256)
assert lib.dispatcher_select_kernel(M, N, K, name, 256) == 0 and name.value.startswith(b"gemm_fp16_rcr_")
rng = np.random.default_rng(0)
A = rng.uniform(-1, 1, (M, K)).astype(np.float16)
B = rng.uniform(-1, 1, (N, K)).astype(np.float16)  # column-major K x N
C = np.full((M, N), np.nan, np.float16)
time_ms = ctypes.c_float(0)
code = lib.dispatcher_run_gemm(A.ctypes.data_as(ctypes.c_void_p), B.ctypes.data_as(ctypes.c_void_p),
                               C.ctypes.data_as(ctypes.c_void_p), M, N, K, ctypes.byref(time_ms))
assert code == 0 and time_ms.value > 0, code
np.testing.assert_allclose(C.astype(np.float64), A.astype(np.float64) @ B.astype(np.float64).T, rtol=0, atol=2e-2)
assert lib.dispatcher_get_kernel_name() == name.value
shape = [ctypes.c_int() for _ in range(9)]
assert lib.dispatcher_get_kernel_config(*map(ctypes.byref, shape)) == 0 and all(x.value > 0 for x in shape)
assert b'"kernels"' in lib.dispatcher_export_registry_json()
lib.dispatcher_cleanup()
print("PASS")
