# SPDX-License-Identifier: MIT
"""Names of devices: torch calls the GPUs of every vendor cuda, DLPack has a number for each; AMD's run through HIP (here a runtime that is
none, tests/device/hip)."""
import os
import pathlib
import shutil
import subprocess
import sys
import types

import numpy
import pytest

import tilewise
from tilewise import _devices, _dlpack

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKE = ROOT / "build/fake-hip/libamdhip64.so.7"


class TorchDevice:
    def __init__(self, kind, index=None):
        self.type, self.index = kind, index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


@pytest.mark.parametrize("hip, name", [("6.3.42134", "hip:1"), (None, "cuda:1")])
def test_gpus_of_torch_are_those_it_was_built_for(monkeypatch, hip, name):
    opened = []
    cuda = types.SimpleNamespace(is_initialized=lambda: bool(opened), current_device=lambda: opened[-1])
    torch = types.SimpleNamespace(version=types.SimpleNamespace(hip=hip), device=TorchDevice, cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert _devices.device_name(TorchDevice("cuda", 1)) == name
    assert _devices.device_name(TorchDevice("cuda")) == name.replace("1", "0")
    opened.append(3)
    assert _devices.device_name(TorchDevice("cuda")) == name.replace("1", "3"), "torch's current one"
    assert _devices.device_name(TorchDevice("cpu", 0)) == "cpu" and _devices.device_name(TorchDevice("meta")) == "meta"
    assert _devices.gpu_index(name) == 1


def test_names_in_text_are_the_librarys():
    names = {"cuda": "cuda:0", "hip": "hip:0", "hip:3": "hip:3", "cpu": "cpu", "emulated:gfx942": "emulated:gfx942"}
    assert {given: _devices.device_name(given) for given in names} == names
    assert [_devices.gpu_index(name) for name in ("cpu", "hip:3", "emulated:gfx942")] == [-1, 3, -1]


class OnRocm:
    """An array of which DLPack says that it is on an AMD GPU."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        capsule = self.array.__dlpack__()
        tensor = _dlpack._Tensor.from_address(_dlpack._get_pointer(capsule, b"dltensor"))
        tensor.device_type, tensor.device_id = 10, 2
        return capsule


def test_dlpack_of_rocm_is_hip():
    assert _dlpack.view_of(OnRocm(numpy.zeros((2, 2), numpy.float32))).device == "hip:2"


def test_b_is_packed_where_the_problem_was_prepared():
    prepared = tilewise.prepare("gemm:m=4,n=6,k=8,dtype=fp32,layout=rcr,packed_b=1")
    b = numpy.ones((6, 8), numpy.float32)
    with pytest.raises(ValueError, match="b: it is on hip:2, but the problem was prepared for cpu"):
        prepared.pack_b(OnRocm(b))
    room = numpy.empty(prepared.packed_b_bytes, numpy.int8)
    with pytest.raises(ValueError, match="packed: it is on hip:2"):
        prepared.pack_b(b, OnRocm(room))


PROGRAM = """
import numpy, tilewise
kernel = "gemm_fp32_rcr_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x8_va4_vb4_vc4@gfx942"
rng = numpy.random.default_rng(1)
a, b = rng.random((70, 36), numpy.float32), rng.random((68, 36), numpy.float32)
dispatcher = tilewise.Dispatcher("hip:0")
assert dispatcher.describe()["arch"] == "gfx942"
c = dispatcher.run_host("gemm:m=70,n=68,k=36,dtype=fp32,layout=rcr", a, b, kernel=kernel)
assert numpy.allclose(c, a @ b.T, atol=1e-4)
"""


@pytest.mark.compiles
@pytest.mark.skipif(not shutil.which("clang++-22"), reason="clang 22 is not installed")
def test_a_product_of_arrays_on_an_amd_gpu():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TILEWISE_HIP": str(FAKE), "TILEWISE_CACHE_DIR": str(ROOT / "build/emulated-cache")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
