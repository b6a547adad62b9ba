# SPDX-License-Identifier: MIT
"""Processes: workers that were forked from a busy one compile in parallel and run, and nothing maps a GPU's driver before a
GPU is used.
"""
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewise
from tilewise.ctypes_utils import GemmRunner, KernelConfig, setup_gemm_dispatcher

TILES = (32, 48, 64)


def compile_and_run(tile):
    """In a worker: a kernel of its own, built there, run there."""
    setup = setup_gemm_dispatcher(KernelConfig(dtype_a="fp32", tile_m=tile, tile_n=64, gfx_arch=None))
    result = GemmRunner(setup).run(np.full((tile, 8), 2.0), np.ones((8, 5)))
    return os.getpid(), setup.cached, setup.library_path.name, result.error or float(result.output.sum())


@pytest.mark.compiles
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_compile_in_parallel(tmp_path, monkeypatch, start):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", os.fspath(tmp_path))
    ones = np.ones((4, 8), np.float32)
    assert (tilewise.gemm(ones, ones) == 8).all()  # the parent has a device and threads of its own
    context = multiprocessing.get_context(start)
    tiles = TILES if start == "fork" else TILES[:1]
    with concurrent.futures.ProcessPoolExecutor(len(tiles), mp_context=context) as pool:
        results = list(pool.map(compile_and_run, tiles))
    assert os.getpid() not in {pid for pid, *_ in results}
    assert [value for *_, value in results] == [tile * 5 * 16.0 for tile in tiles]
    assert len({name for _, _, name, _ in results}) == len(tiles) and not any(cached for _, cached, *_ in results)
    assert compile_and_run(tiles[0])[1], "what a worker built is there for the others"


NO_DRIVER = """
import numpy, tilewise, tilewise.ctypes_utils, tilewise.grouped_conv_utils
tilewise.select("gemm:m=64,n=64,k=64,dtype=bf16", arch="sm_90a")
tilewise.Dispatcher("cuda:0"), tilewise.Registry().add_rule_set("tiny", op="gemm", arch="sm_90a")
tilewise.gemm(numpy.ones((2, 2), "f4"), numpy.ones((2, 2), "f4"))
with open("/proc/self/maps") as maps:
    text = maps.read()
assert "libtilewise" in text and not any(name in text for name in ("libcuda", "libnvrtc", "libamdhip")), text
"""


def test_no_driver_is_mapped_before_a_gpu_is_used():
    result = subprocess.run([sys.executable, "-c", NO_DRIVER], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
