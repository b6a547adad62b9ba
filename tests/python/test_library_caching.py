# SPDX-License-Identifier: MIT
"""Libraries by the original's names: one name for each config, built once, found again by every process."""
import os
import re
import subprocess
import sys

import pytest

from tilewise.ctypes_utils import KernelConfig, setup_gemm_dispatcher
from tilewise.dispatcher_common import get_generated_kernels_dir

pytestmark = pytest.mark.compiles

CONFIG = {"dtype_a": "bf16", "tile_m": 64, "tile_n": 64, "tile_k": 32}
NAME = re.compile(r"libdispatcher_gemm_bf16_rcr_64x64x32_(\d+x\d+x\d+)_(\d+x\d+x\d+)_compv4_default_intrawave_\S+\.so")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """One for the whole file: each test begins with what the one before has built."""
    if not hasattr(own_cache, "path"):
        own_cache.path = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("TILEWISE_CACHE_DIR", os.fspath(own_cache.path))
    return own_cache.path


def kernels_in(cache):
    return sorted(cache.glob("v1/*/*/kernel.so"))


def test_01_unique_library_naming():
    """Every field is in the name, so no two configs share one."""
    changes = [{}, {"dtype_a": "fp16"}, {"layout_b": "row"}, {"tile_m": 128}, {"wave_m": 1}, {"warp_m": 16},
               {"pipeline": "compv3"}, {"epilogue": "default"}, {"scheduler": "interwave"}, {"pad_k": False},
               {"dtype_c": "fp32"}, {"options": {"split_k": 2}}, {"options": {"vector_a": 8}}, {"gfx_arch": "gfx942"},
               {"gfx_arch": "gfx950"}]
    names = [KernelConfig(**{**CONFIG, "gfx_arch": "gfx90a", **change}).library_name for change in changes]
    assert len(set(names)) == len(changes)
    assert names[0] == "libdispatcher_gemm_bf16_rcr_64x64x32_2x2x1_32x32x16_compv4_cshuffle_intrawave_gfx90a.so"


def test_02_build_and_cache(own_cache):
    assert kernels_in(own_cache) == []
    setup = setup_gemm_dispatcher(KernelConfig(**CONFIG))
    assert setup.success and not setup.cached, setup.error
    assert NAME.fullmatch(setup.library_path.name) and setup.library_path.parent == get_generated_kernels_dir()
    (built,) = kernels_in(own_cache)
    assert setup.library_path.resolve() == built
    again = setup_gemm_dispatcher(KernelConfig(**CONFIG))
    assert again.success and again.cached and again.library_path == setup.library_path
    assert kernels_in(own_cache) == [built]


def test_03_different_configs_different_libraries(own_cache):
    first = setup_gemm_dispatcher(KernelConfig(**CONFIG))
    other = setup_gemm_dispatcher(KernelConfig(**{**CONFIG, "dtype_a": "fp16"}))
    assert first.success and other.success, other.error
    assert first.library_path != other.library_path
    assert first.library_path.resolve() != other.library_path.resolve() and len(kernels_in(own_cache)) == 2


def test_04_cache_message(capsys):
    """The exact line of a hit."""
    setup = setup_gemm_dispatcher(KernelConfig(**CONFIG), verbose=True)
    assert setup.cached
    assert f"  Using cached library: {setup.library_path.name}\n" in capsys.readouterr().out


def test_04b_names_that_others_could_exchange_are_not_given(own_cache):
    folder = get_generated_kernels_dir()
    folder.chmod(0o777)
    refused = setup_gemm_dispatcher(KernelConfig(**CONFIG))
    folder.chmod(0o700)
    assert not refused.success and "chmod go-w" in refused.error and os.fspath(folder) in refused.error
    assert setup_gemm_dispatcher(KernelConfig(**CONFIG)).success


def test_05_no_rebuild_in_a_second_process(own_cache):
    """It even needs no compiler."""
    before = {path: path.stat().st_ino for path in kernels_in(own_cache)}
    code = ("from tilewise.ctypes_utils import KernelConfig, setup_gemm_dispatcher\n"
            f"setup = setup_gemm_dispatcher(KernelConfig(**{CONFIG}), verbose=True)\n"
            "assert setup.success and setup.cached, setup.error\n")
    result = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TILEWISE_CXX": "/bin/false"},
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^  Using cached library: " + NAME.pattern + "$", result.stdout, re.M)
    assert {path: path.stat().st_ino for path in kernels_in(own_cache)} == before
