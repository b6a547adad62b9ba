# SPDX-License-Identifier: MIT
"""A GEMM program as a user of the original writes it, call by call from its documentation. Only the arch is an argument:
gemm_program.py ARCH.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import numpy as np
from ctypes_utils import (SUPPORTED_DTYPES, VALID_DTYPES, CodegenRunner, Dispatcher, DispatcherLib, GemmRunner,
                          KernelConfig, Registry, ValidationResult, Validator, auto_correct_kernel_config, cleanup_gemm,
                          detect_gpu_arch, find_matching_kernel_header, get_arch_filter_data, get_build_dir, get_ck_root,
                          get_dispatcher_root, get_generated_kernels_dir, preshuffle_weight_matrix,
                          print_auto_correction, print_kernel_config, reset_for_example, setup_gemm_dispatcher,
                          setup_multiple_gemm_dispatchers, validate_kernel_config)
from dispatcher_common import (Colors, ValidationResultBase, auto_correct_trait, auto_correct_wave,
                               cleanup_generated_kernels, find_hipcc, get_codegen_dir, print_error, print_info,
                               print_phase, print_success, validate_trait_combo, validate_warp_tile_config,
                               validate_wave_config)

ARCH = sys.argv[1]
M, N, K = 64, 48, 32


def basic(reset=True):
    """A config in full, set up, run, compared."""
    if reset:
        reset_for_example()
    config = KernelConfig(dtype_a="fp16", dtype_b="fp16", dtype_c="fp16", dtype_acc="fp32", layout_a="row",
                          layout_b="col", layout_c="row", tile_m=128, tile_n=128, tile_k=32, wave_m=2, wave_n=2,
                          wave_k=1, warp_m=32, warp_n=32, warp_k=16, block_size=256, pipeline="compv4",
                          scheduler="intrawave", epilogue="cshuffle", pad_m=True, pad_n=True, pad_k=True, gfx_arch=ARCH,
                          variant="standard")
    config.print_config()
    print_kernel_config(config, "REQUESTED KERNEL CONFIGURATION")
    assert config.layout == "rcr" and config.tile_str == "128x128x32"
    checked = validate_kernel_config(config)
    assert isinstance(checked, ValidationResult)
    checked.print_result()
    corrected, was_modified, corrections = auto_correct_kernel_config(config, verbose=True)
    print_auto_correction(config, corrected, corrections)
    assert was_modified == (not checked.is_valid) and validate_kernel_config(corrected).is_valid
    assert (corrected.dtype_b, corrected.dtype_c, corrected.dtype_acc) == ("fp16", "fp16", "fp32")
    if not checked.is_valid:
        assert set(checked.suggested_fixes) & {"wave_m", "warp_m", "tile_k", "epilogue"}, checked.suggested_fixes

    setup = setup_gemm_dispatcher(config, registry_name="basic", verbose=True, auto_rebuild=True)
    assert setup.success, setup.error
    assert setup.config.pipeline == "compv4" and setup.config.gfx_arch == ARCH
    assert setup.kernel_header.exists() and find_matching_kernel_header(setup.config) == setup.kernel_header
    dispatcher = setup.dispatcher
    rng = np.random.default_rng(1)
    A = rng.uniform(-1, 1, (M, K)).astype(np.float16)
    B = rng.uniform(-1, 1, (K, N)).astype(np.float16)
    assert dispatcher.is_supported(M, N, K)
    print("selected", dispatcher.select_kernel(M, N, K))
    result = dispatcher.run(A, B, M, N, K)
    assert result.success and result.status == 0 and result.time_ms > 0 and result.tflops > 0, result.error
    validator = Validator(rtol=1e-2, atol=1e-2)
    reference = validator.compute_reference(A, B)
    correct, max_diff, mean_diff = validator.check(result.output, reference)
    assert correct, (max_diff, mean_diff)
    assert result.C is result.output and result.kernel_name
    return setup, A, B, reference


def library(setup, A, B, reference):
    """The library itself: host pointers, statuses."""
    lib = setup.lib
    assert lib.initialize() and lib.get_kernel_count() == 1 and lib.path.exists()
    assert lib.get_kernel_name() == lib.select_kernel(M, N, K)
    C = np.zeros((M, N), np.float16)
    status, time_ms = lib.run_gemm(np.ascontiguousarray(A), np.ascontiguousarray(B.T), C, M, N, K)
    assert status == 0 and time_ms > 0
    assert Validator(1e-2, 1e-2).check(C, reference)[0]
    assert json.loads(lib.export_json())["kernels"] and json.loads(lib.export_registry_json())
    assert DispatcherLib.load(lib.path).get_kernel_name() == lib.get_kernel_name()
    assert DispatcherLib.load(Path("/nonexistent/lib.so")) is None
    runner = GemmRunner(lib)
    assert runner.run(A, B).success
    numbers = runner.benchmark(M, N, K, warmup=1, iterations=2)
    assert numbers["min_ms"] <= numbers["avg_ms"] <= numbers["max_ms"] and numbers["iterations"] == 2
    lib.cleanup()


def registries(setup, A, B, reference):
    """A registry that is built in parallel, and a dispatcher over it."""
    registry = Registry(name="several", lib=setup.lib)
    assert registry.register_kernel(setup.config)
    assert registry.kernel_count == len(registry.get_kernels()) == 1
    built = registry.build(verbose=True, max_workers=None)
    assert all(item.success for item in built)
    registry.bind_library(built[0].lib)
    dispatcher = Dispatcher(registry=registry, lib=built[0].lib)
    assert Validator(1e-2, 1e-2).check(dispatcher.run(A, B, M, N, K).output, reference)[0]
    many = setup_multiple_gemm_dispatchers([setup.config, {"dtype_a": "fp16", "gfx_arch": ARCH, "tile_config": {
        "tile_m": [128], "tile_n": [128], "tile_k": [32]}, "trait_config": {"pipeline": ["compv4"]}}], max_workers=2)
    assert [item.success for item in many] == [True, True], many
    registry.clear()
    assert registry.kernel_count == 0


def the_rest(setup):
    """Paths, tables and helpers."""
    for path in (get_build_dir(), get_dispatcher_root(), get_ck_root(), get_codegen_dir(), get_generated_kernels_dir()):
        assert isinstance(path, Path)
    data = get_arch_filter_data()
    assert ARCH in data["supported_archs"] and ARCH in data["warp_combos"]
    assert data["warp_tile_combos"][ARCH]["fp16_fp16_fp32"] and ("compv4", "cshuffle", "interwave") in data["trait_unsupported"]
    assert "fp16" in VALID_DTYPES and SUPPORTED_DTYPES["fp16", "fp16"]["acc"] == "fp32"
    wave = [setup.config.wave_m, setup.config.wave_n, setup.config.wave_k]
    assert validate_wave_config(wave, ARCH) == (True, "") and auto_correct_wave(wave, ARCH) == wave
    assert validate_warp_tile_config([setup.config.warp_m, setup.config.warp_n, setup.config.warp_k], ARCH, "fp16")[0]
    assert not validate_trait_combo("compv4", "cshuffle", "interwave")[0]
    assert auto_correct_trait("compv4", "interwave") == ("compv4", "intrawave")
    assert detect_gpu_arch(fallback="gfx942").startswith(("gfx", "sm_", "cpu"))
    assert find_hipcc() is None or Path(find_hipcc()).is_file()
    B = np.arange(64 * 96, dtype=np.float16).reshape(64, 96)
    assert sorted(preshuffle_weight_matrix(B, 32, 16, ARCH).ravel()) == sorted(B.ravel())
    codegen = CodegenRunner(datatype="fp16", layout="rcr", gpu_target=ARCH, max_workers=2)
    generated = codegen.generate("standard")
    assert generated.success and generated.kernel_count == len(generated.instance_names) > 0, generated.stderr
    assert codegen.generate_from_config(setup.config).success
    assert ValidationResultBase(is_valid=True).is_valid
    print_phase(1, "phases"), print_success(Colors.green("good")), print_error("bad"), print_info("news")
    cleanup_generated_kernels()
    cleanup_gemm()


if __name__ == "__main__":
    made = basic()
    library(*made)
    registries(*made)
    the_rest(made[0])
    print("PASS")
