# SPDX-License-Identifier: MIT
"""The original's C functions, loaded as its clients do: by the path of one library, with ctypes and nothing else."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIB = pathlib.Path(os.environ.get("TILEWISE_LIBRARY", ROOT / "build" / "lib" / "libtilewise.so")).parent
INTS = ("N G C K input_d input_h input_w filter_z filter_y filter_x stride_d stride_h stride_w pad_d pad_h pad_w "
        "dilation_d dilation_h dilation_w").split()
FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT = 0, 1, 2


class ConvProblemC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in [*INTS, "direction", "split_k"]]


class ConvBwdwProblemC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in [*INTS, "split_k"]]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("TILEWISE_COMPAT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def gemm():
    library = ctypes.CDLL(os.fspath(LIB / "libdispatcher_gemm_lib.so"))
    library.dispatcher_get_kernel_name.restype = ctypes.c_char_p
    library.dispatcher_export_registry_json.restype = ctypes.c_char_p
    library.dispatcher_last_error.restype = ctypes.c_char_p
    library.dispatcher_configure.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.dispatcher_is_supported.argtypes = [ctypes.c_int64] * 3
    library.dispatcher_select_kernel.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_char_p, ctypes.c_int]
    library.dispatcher_run_gemm.argtypes = ([ctypes.c_void_p] * 3 + [ctypes.c_int64] * 3 +
                                            [ctypes.POINTER(ctypes.c_float)])
    yield library
    for setting, value in {"dtype": "fp16", "layout": "", "kernel": "", "device": "auto"}.items():
        library.dispatcher_configure(setting.encode(), value.encode())
    library.dispatcher_cleanup()


@pytest.fixture
def conv():
    library = ctypes.CDLL(os.fspath(LIB / "libdispatcher_conv_lib.so"))
    library.conv_dispatcher_version.restype = ctypes.c_char_p
    library.conv_dispatcher_last_error.restype = ctypes.c_char_p
    library.conv_dispatcher_run.restype = ctypes.c_float
    library.conv_dispatcher_run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.POINTER(ConvProblemC), ctypes.c_void_p]
    library.conv_dispatcher_configure.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    yield library
    for setting, value in {"dtype": "fp16", "layout": ""}.items():
        library.conv_dispatcher_configure(setting.encode(), value.encode())
    library.conv_dispatcher_cleanup()


def product(library, m, n, k, dtype=np.float16, seed=0):
    """Runs C = A B in layout rcr and returns what came out and what should have."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, (m, k)).astype(dtype)
    b = rng.uniform(-1, 1, (n, k)).astype(dtype)  # column-major k x n
    c = np.full((m, n), np.nan, dtype)
    time_ms = ctypes.c_float(-1)
    code = library.dispatcher_run_gemm(a.ctypes.data, b.ctypes.data, c.ctypes.data, m, n, k, ctypes.byref(time_ms))
    return code, time_ms.value, c, a.astype(np.float64) @ b.astype(np.float64).T


def test_a_client_of_the_original_multiplies(gemm):
    assert gemm.dispatcher_init() == 0
    assert gemm.dispatcher_initialize() == 0, "a second time does nothing"
    assert gemm.dispatcher_is_supported(100, 70, 33) == 1
    code, time_ms, c, expected = product(gemm, 100, 70, 33)
    assert code == 0, gemm.dispatcher_last_error()
    assert time_ms > 0
    np.testing.assert_allclose(c, expected, rtol=2e-3, atol=2e-3)


def test_names_counts_and_shapes_agree(gemm):
    assert gemm.dispatcher_get_kernel_count() == 0
    assert gemm.dispatcher_get_kernel_name() == b""
    assert gemm.dispatcher_init() == 0
    count = gemm.dispatcher_get_kernel_count()
    assert count > 0
    buffer = ctypes.create_string_buffer(256)
    assert gemm.dispatcher_select_kernel(64, 64, 64, buffer, 256) == 0
    name = buffer.value.decode()
    assert name.startswith("gemm_fp16_rcr_") and gemm.dispatcher_get_kernel_name().decode() == name
    numbers = [ctypes.c_int() for _ in range(9)]
    assert gemm.dispatcher_get_kernel_config(*map(ctypes.byref, numbers)) == 0
    tile, warp_tile, wave = ("x".join(str(n.value) for n in numbers[i:i + 3]) for i in (0, 3, 6))
    assert f"_{tile}_{wave}_{warp_tile}" in name
    names = set()
    for i in range(count):
        assert gemm.dispatcher_get_kernel_name_at(i, buffer, 256) == 0
        names.add(buffer.value.decode())
    assert len(names) == count and name in names
    assert gemm.dispatcher_get_kernel_name_at(count, buffer, 256) == -1


def test_the_registry_is_the_original_json(gemm):
    assert gemm.dispatcher_export_registry_json() == b""
    gemm.dispatcher_init()
    exported = json.loads(gemm.dispatcher_export_registry_json())
    assert exported["metadata"]["total_kernels"] == gemm.dispatcher_get_kernel_count() == len(exported["kernels"])
    assert exported["statistics"]["by_datatype"] == {"fp16": len(exported["kernels"])}
    for kernel in exported["kernels"]:
        assert kernel["signature"]["dtype_a"] == kernel["signature"]["dtype_c"] == "fp16"
        shape = kernel["algorithm"]["tile_shape"]
        assert f"_{shape['m']}x{shape['n']}x{shape['k']}_" in kernel["name"]


def test_a_small_buffer_is_an_error_and_stays_as_it_was(gemm):
    gemm.dispatcher_init()
    buffer = ctypes.create_string_buffer(b"untouched", 256)
    assert gemm.dispatcher_select_kernel(64, 64, 64, buffer, 10) == -1
    assert buffer.value == b"untouched"
    assert b"too small" in gemm.dispatcher_last_error()
    assert gemm.dispatcher_select_kernel(64, 64, 64, None, 10) == -1
    assert gemm.dispatcher_select_kernel(64, 64, 64, buffer, 0) == -1
    need = len(gemm.dispatcher_get_kernel_name()) + 1
    assert gemm.dispatcher_select_kernel(64, 64, 64, buffer, need - 1) == -1
    assert gemm.dispatcher_select_kernel(64, 64, 64, buffer, need) == 0


def test_what_cannot_be_done_has_its_code(gemm):
    buffer = ctypes.create_string_buffer(256)
    assert gemm.dispatcher_select_kernel(64, 64, 64, buffer, 256) == -1, "before init"
    gemm.dispatcher_init()
    assert gemm.dispatcher_select_kernel(0, 64, 64, buffer, 256) == -2
    assert gemm.dispatcher_is_supported(-1, 64, 64) == 0
    assert gemm.dispatcher_run_gemm(None, None, None, 4, 4, 4, None) == -1
    data = np.zeros(16, np.float16)
    assert gemm.dispatcher_run_gemm(data.ctypes.data, data.ctypes.data, data.ctypes.data, 0, 4, 4, None) == -2
    assert gemm.dispatcher_configure(b"colour", b"red") == -1
    assert gemm.dispatcher_configure(b"repeat", b"0") == -1
    assert gemm.dispatcher_configure(None, None) == -1


def test_memory_of_little_alignment(gemm):
    gemm.dispatcher_init()
    a, b, c = (np.zeros(4 * 4 + 1, np.float16)[1:].reshape(4, 4) for _ in range(3))
    a[:] = np.eye(4)
    b[:] = np.arange(16).reshape(4, 4)
    assert gemm.dispatcher_run_gemm(a.ctypes.data, b.ctypes.data, c.ctypes.data, 4, 4, 4, None) == 0
    np.testing.assert_array_equal(c, b.T)


@pytest.mark.compiles
def test_the_defaults_change_by_a_call(gemm):
    assert gemm.dispatcher_init() == 0
    assert gemm.dispatcher_configure(b"dtype", b"fp32") == 0
    code, _, c, expected = product(gemm, 33, 17, 65, np.float32)
    assert code == 0 and b"_fp32_" in gemm.dispatcher_get_kernel_name()
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
    name = gemm.dispatcher_get_kernel_name()
    assert gemm.dispatcher_configure(b"kernel", name) == 0
    assert product(gemm, 9, 9, 9, np.float32)[0] == 0
    assert gemm.dispatcher_get_kernel_name() == name


def test_the_defaults_change_by_the_environment():
    program = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.dispatcher_get_kernel_name.restype = ctypes.c_char_p
code = library.dispatcher_init()
print(code, library.dispatcher_get_kernel_name().decode())
"""
    def run(**changes):
        return subprocess.run([sys.executable, "-c", program, LIB / "libdispatcher_gemm_lib.so"],
                              env={**os.environ, **changes}, capture_output=True, text=True, check=True).stdout.split()

    code, name = run(TILEWISE_COMPAT_DTYPE="bf16", TILEWISE_COMPAT_LAYOUT="rrr")
    assert code == "0" and name.startswith("gemm_bf16_rrr_")
    assert run(TILEWISE_COMPAT_DTYPE="bf17")[0] == "-1"
    assert run(TILEWISE_COMPAT_REPEAT="often")[0] == "-1"


def test_structs_are_consecutive_ints():
    assert ctypes.sizeof(ConvProblemC) == 21 * ctypes.sizeof(ctypes.c_int)
    assert ctypes.sizeof(ConvBwdwProblemC) == 20 * ctypes.sizeof(ctypes.c_int)


SHAPES = {
    "2d": dict(N=2, G=2, C=8, K=12, input_d=1, input_h=7, input_w=6, filter_z=1, filter_y=3, filter_x=3, stride_d=1,
               stride_h=2, stride_w=1, pad_d=0, pad_h=1, pad_w=1, dilation_d=1, dilation_h=1, dilation_w=1),
    "3d": dict(N=1, G=2, C=4, K=6, input_d=4, input_h=5, input_w=6, filter_z=2, filter_y=3, filter_x=3, stride_d=1,
               stride_h=1, stride_w=2, pad_d=1, pad_h=1, pad_w=0, dilation_d=1, dilation_h=1, dilation_w=1),
}


class Convolution:
    """Random tensors of a problem, channels last, and the three directions computed one tap at a time in double."""

    def __init__(self, shape, dtype=np.float16, seed=0):
        s = self.shape = shape
        self.dims = [(s["input_" + i], s["filter_" + f], s["stride_" + i], s["pad_" + i], s["dilation_" + i])
                     for i, f in (("d", "z"), ("h", "y"), ("w", "x"))]
        self.out = [(i + 2 * p - d * (f - 1) - 1) // st + 1 for i, f, st, p, d in self.dims]
        rng = np.random.default_rng(seed)
        draw = lambda *size: rng.uniform(-1, 1, size).astype(dtype)
        g, c, k = s["G"], s["C"] // s["G"], s["K"] // s["G"]
        self.x = draw(s["N"], *(d[0] for d in self.dims), g, c)
        self.w = draw(g, k, *(d[1] for d in self.dims), c)
        self.dy = draw(s["N"], *self.out, g, k)

    def taps(self):
        """For each tap: its index, and the slices of x (padded) that meet the outputs."""
        for tap in np.ndindex(*(d[1] for d in self.dims)):
            yield tap, tuple(slice(t * d[4], t * d[4] + d[2] * (o - 1) + 1, d[2])
                             for t, d, o in zip(tap, self.dims, self.out))

    def padded(self, x):
        return np.pad(x.astype(np.float64), [(0, 0), *((d[3], d[3]) for d in self.dims), (0, 0), (0, 0)])

    def forward(self):
        x, y = self.padded(self.x), np.zeros(self.dy.shape)
        for tap, part in self.taps():
            y += np.einsum("ndhwgc,gkc->ndhwgk", x[(slice(None), *part)], self.w[(slice(None), slice(None), *tap)].astype(float))
        return y

    def backward_data(self):
        dx = self.padded(np.zeros(self.x.shape))
        for tap, part in self.taps():
            dx[(slice(None), *part)] += np.einsum("ndhwgk,gkc->ndhwgc", self.dy.astype(float),
                                                  self.w[(slice(None), slice(None), *tap)].astype(float))
        inside = tuple(slice(d[3], d[3] + d[0]) for d in self.dims)
        return dx[(slice(None), *inside)]

    def backward_weight(self):
        x, dw = self.padded(self.x), np.zeros(self.w.shape)
        for tap, part in self.taps():
            dw[(slice(None), slice(None), *tap)] = np.einsum("ndhwgk,ndhwgc->gkc", self.dy.astype(float),
                                                             x[(slice(None), *part)])
        return dw


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("direction", [FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT])
def test_convolutions_in_every_direction(conv, shape, direction):
    assert conv.conv_dispatcher_init() == 0, conv.conv_dispatcher_last_error()
    problem = ConvProblemC(**shape, direction=direction, split_k=1)
    c = Convolution(shape)
    a, b, expected = {FORWARD: (c.x, c.w, c.forward), BACKWARD_DATA: (c.dy, c.w, c.backward_data),
                      BACKWARD_WEIGHT: (c.x, c.dy, c.backward_weight)}[direction]
    expected = expected()
    out = np.full(expected.shape, np.nan, np.float16)
    assert conv.conv_dispatcher_is_supported(ctypes.byref(problem)) == 1
    time_ms = conv.conv_dispatcher_run(a.ctypes.data, b.ctypes.data, out.ctypes.data, problem, None)
    assert time_ms > 0, conv.conv_dispatcher_last_error()
    np.testing.assert_allclose(out, expected, rtol=4e-3, atol=4e-3)


def test_conv_names_versions_and_codes(conv):
    assert conv.conv_dispatcher_version() == b"2.0.0"
    problem = ConvProblemC(**SHAPES["2d"], direction=FORWARD, split_k=1)
    buffer = ctypes.create_string_buffer(256)
    assert conv.conv_dispatcher_select_kernel(ctypes.byref(problem), buffer, 256) == -1, "before init"
    assert conv.conv_dispatcher_has_kernels() == 0
    assert conv.conv_dispatcher_init() == 0
    assert conv.conv_dispatcher_has_kernels() == conv.conv_dispatcher_has_bwd_data() == 1
    assert conv.conv_dispatcher_has_bwd_weight() == 1
    assert conv.conv_dispatcher_select_kernel(ctypes.byref(problem), buffer, 256) == 0
    assert buffer.value.startswith(b"grouped_conv_fwd_fp16_")
    assert conv.conv_dispatcher_select_kernel(ctypes.byref(problem), buffer, 5) == -1
    assert conv.conv_dispatcher_select_kernel(None, buffer, 256) == -1
    assert conv.conv_dispatcher_get_kernel_name(0, buffer, 256) == 0
    assert conv.conv_dispatcher_get_kernel_name(conv.conv_dispatcher_get_kernel_count(), buffer, 256) == -1
    problem.G = 3
    assert conv.conv_dispatcher_select_kernel(ctypes.byref(problem), buffer, 256) == -2
    assert conv.conv_dispatcher_is_supported(ctypes.byref(problem)) == 0
    assert conv.conv_dispatcher_run(1, 1, 1, problem, None) == -2
    problem.direction = 7
    assert conv.conv_dispatcher_select_kernel(ctypes.byref(problem), buffer, 256) == -1
    assert conv.conv_dispatcher_run(None, None, None, problem, None) == -1
    assert conv.conv_dispatcher_cleanup() == 0


@pytest.mark.parametrize("split_k", [1, 2])
def test_backward_weight_has_a_library_of_its_own(split_k):
    library = ctypes.CDLL(os.fspath(LIB / "libdispatcher_conv_bwdw_lib.so"))
    library.conv_bwdw_version.restype = ctypes.c_char_p
    library.conv_bwdw_run.restype = ctypes.c_float
    library.conv_bwdw_run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.POINTER(ConvBwdwProblemC), ctypes.c_void_p]
    assert library.conv_bwdw_version() == b"1.0.0"
    assert library.conv_bwdw_init() == 0
    assert library.conv_bwdw_has_kernels() == 1
    buffer = ctypes.create_string_buffer(256)
    assert library.conv_bwdw_get_kernel_name(0, buffer, 256) == 0
    assert buffer.value.startswith(b"grouped_conv_bwd_weight_fp16_")
    assert library.conv_bwdw_get_kernel_count() > 0
    c = Convolution(SHAPES["2d"])
    expected = c.backward_weight()
    out = np.full(expected.shape, np.nan, np.float16)
    problem = ConvBwdwProblemC(**SHAPES["2d"], split_k=split_k)
    assert library.conv_bwdw_run(c.x.ctypes.data, c.dy.ctypes.data, out.ctypes.data, problem, None) > 0
    np.testing.assert_allclose(out, expected, rtol=4e-3, atol=4e-3)
    assert library.conv_bwdw_run(None, None, None, problem, None) == -1
    library.conv_bwdw_cleanup()


def test_libtilewise_has_the_functions_too():
    library = ctypes.CDLL(os.fspath(LIB / "libtilewise.so"))
    assert library.dispatcher_init() == 0
    assert library.dispatcher_get_kernel_count() > 0
    library.dispatcher_cleanup()


@pytest.mark.parametrize("words, code", [(["40", "30", "20", "--validate"], 0), (["--validate", "5", "6", "7"], 0),
                                         (["0", "6", "7"], 1), (["5", "6"], 2), (["--help"], 0),
                                         (["5", "6", "7", "--dtype", "fp32,lda=99"], 1)])
def test_gpu_helper(words, code):
    done = subprocess.run([ROOT / "build/bin/gpu_helper", *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    if code == 0 and "--help" not in words:
        answer = json.loads(done.stdout)
        sizes = [int(word) for word in words if word.isdigit()]
        assert answer["problem"] == dict(zip("MNK", sizes)) and answer["status"] == "success"
        assert answer["kernel"] == answer["selected_kernel"] and answer["execution"]["time_ms"] > 0
        assert answer["execution"]["flops"] == 2 * sizes[0] * sizes[1] * sizes[2]
        validation = answer["validation"]
        assert validation["accuracy"] == 100 and validation["correct_elements"] == sizes[0] * sizes[1]
    if code == 1:
        assert json.loads(done.stdout)["status"] == "error"
