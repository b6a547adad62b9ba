# SPDX-License-Identifier: MIT
"""The original dispatcher's Python modules by name: every type stays itself, failures say why, and nothing is substituted or
opened before it is needed.
"""
import json
import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from conv_reference import backward_data, backward_weight, forward

import tilewise
from tilewise import _compat_device, ctypes_utils, dispatcher_common, grouped_conv_utils
from tilewise.ctypes_utils import GemmRunner, KernelConfig, Registry, Validator, setup_gemm_dispatcher
from tilewise.grouped_conv_utils import (GpuGroupedConvRunner, GroupedConvKernelConfig, GroupedConvProblem,
                                         GroupedConvRegistry, setup_multiple_grouped_conv_dispatchers)

pytestmark = pytest.mark.compiles
ROOT = pathlib.Path(__file__).resolve().parents[2]
CPU = dispatcher_common.host_cpu_arch()
NUMPY = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8": ml_dtypes.float8_e4m3fn,
         "bf8": ml_dtypes.float8_e5m2, "int8": np.int8}
OUTPUT = {"fp8": "float16", "bf8": "float16", "int8": "int32"}
EPSILON = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2, "int32": 0}


def random(rng, shape, dtype):
    return rng.integers(-9, 10, shape) if dtype == "int8" else rng.uniform(-1, 1, shape)


def assert_close(have, want):
    bound = EPSILON[have.dtype.name] * (np.abs(want).max() + 1)
    np.testing.assert_allclose(have.astype(np.float64), want, rtol=0, atol=bound)


@pytest.fixture(scope="module")
def bf16_setup():
    setup = setup_gemm_dispatcher(KernelConfig(dtype_a="bf16", gfx_arch=CPU))
    assert setup.success, setup.error
    return setup


# ---- GEMM ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", list(NUMPY))
def test_every_type_stays_itself(dtype):
    """In the kernel's name, the library's name, the buffers and the result."""
    rng = np.random.default_rng(1)
    setup = setup_gemm_dispatcher(KernelConfig(dtype_a=dtype, gfx_arch=CPU))
    assert setup.success, setup.error
    assert setup.lib.get_kernel_name().startswith(f"gemm_{dtype}_rcr_")
    assert setup.library_path.name.startswith(f"libdispatcher_gemm_{dtype}_rcr_")
    a, b = random(rng, (33, 40), dtype), random(rng, (40, 29), dtype)
    result = GemmRunner(setup.lib, repeat=1).run(a, b)
    assert result.success and result.time_ms > 0 and result.tflops > 0, result.error
    assert result.output.dtype.name == OUTPUT.get(dtype, np.dtype(NUMPY[dtype]).name)
    exact = a.astype(NUMPY[dtype]).astype(np.float64) @ b.astype(NUMPY[dtype]).astype(np.float64)
    assert_close(result.output, exact)


@pytest.mark.parametrize("layout", ["rrr", "rcr", "crr", "ccc"])
def test_operands_are_stored_as_the_layout_says(layout):
    words = {f"layout_{name}": {"r": "row", "c": "col"}[letter] for name, letter in zip("abc", layout)}
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-1, 1, (13, 17)), rng.uniform(-1, 1, (17, 19))
    setup = setup_gemm_dispatcher(KernelConfig(dtype_a="fp32", gfx_arch=CPU, **words))
    assert setup.config.layout == layout and f"_{layout}_" in setup.library_path.name
    result = setup.dispatcher.run(a, b, 13, 19, 17)
    assert result.success, result.error
    assert_close(result.output, a.astype(np.float32).astype(np.float64) @ b.astype(np.float32).astype(np.float64))


def test_corrections_are_listed_and_can_be_forbidden():
    config = KernelConfig(dtype_a="fp32", gfx_arch=CPU)
    assert not ctypes_utils.validate_kernel_config(config)
    setup = setup_gemm_dispatcher(config)
    assert setup.success and any("wave_listed" in change for change in setup.corrections)
    assert ctypes_utils.validate_kernel_config(setup.config)
    strict = setup_gemm_dispatcher(config, auto_correct=False)
    assert not strict.success and "wave_listed" in strict.error and strict.lib is None


def test_a_kernel_that_cannot_be_built_is_a_failure_with_command_and_log(tmp_path, monkeypatch):
    compiler = tmp_path / "c++"
    # It answers what it is, and fails to compile.
    compiler.write_text('#!/bin/sh\ncase "$*" in *-o*) echo broken here >&2; exit 1;; esac\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("TILEWISE_CXX", os.fspath(compiler))
    monkeypatch.setenv("TILEWISE_CACHE_DIR", os.fspath(tmp_path / "cache"))
    setup = setup_gemm_dispatcher(KernelConfig(dtype_a="fp32", gfx_arch=CPU, tile_m=96))
    assert not setup.success and setup.lib is None and setup.dispatcher is None
    assert "command: " in setup.error and "broken here" in setup.error
    with pytest.raises(ValueError, match="the set-up failed"):
        GemmRunner(setup)


def test_a_config_without_code_is_a_failure():
    sharing_k = KernelConfig(gfx_arch="gfx942", pipeline="compv3", wave_m=2, wave_n=1, wave_k=2)
    setup = setup_gemm_dispatcher(sharing_k, auto_correct=False)
    assert not setup.success and "no code" in setup.error


def test_wrong_operands_are_failures(bf16_setup):
    for arguments, message in (((np.ones((3, 4)), np.ones((5, 6))), "need (M, K) and (K, N)"),
                               ((np.ones((3, 4)), np.ones((4, 5)), 3, 5, 9), "K is 9"),
                               ((np.ones(3), np.ones((4, 5))), "need (M, K)"),
                               ((np.array([["a"]]), np.ones((1, 1))), "a: expected numbers")):
        result = GemmRunner(bf16_setup.lib).run(*arguments)
        assert not result.success and message in result.error and result.output is None


def test_a_registry_chooses_for_each_problem(bf16_setup):
    registry = Registry("two")
    assert registry.register_kernel(bf16_setup.config) and not registry.register_kernel(bf16_setup.config)
    exact = ctypes_utils.auto_correct_kernel_config(
        KernelConfig(dtype_a="bf16", gfx_arch=CPU, tile_m=64, pad_m=False, pad_n=False, pad_k=False))[0]
    registry.register_kernel(exact)
    dispatcher = ctypes_utils.Dispatcher(registry)
    assert registry.kernel_count == 2 and json.loads(registry.to_json())["count"] == 2
    assert dispatcher.select_kernel(65, 33, 31) == bf16_setup.config.name  # the other takes whole tiles only
    assert dispatcher.is_supported(64, 64, 64)
    rng = np.random.default_rng(4)
    a, b = rng.uniform(-1, 1, (65, 31)), rng.uniform(-1, 1, (31, 33))
    result = dispatcher.run(a, b)
    assert result.success and result.kernel_name == bf16_setup.config.name and result.output.dtype == ml_dtypes.bfloat16
    with pytest.warns(UserWarning, match="wave_listed"):
        registry.register_kernel(KernelConfig(gfx_arch=CPU))
    assert all(ctypes_utils.validate_kernel_config(kernel) for kernel in registry.get_kernels())
    empty = ctypes_utils.Dispatcher(Registry("empty")).run(a, b)
    assert not empty.success and "no kernels" in empty.error


def test_the_validator_sees_nan_and_shapes():
    validator = Validator()
    ones = np.ones((2, 2))
    assert validator.check(ones, ones)[0]
    assert not validator.check(np.full((2, 2), np.nan), ones)[0]
    assert not validator.check(np.ones((2, 3)), ones)[0]
    assert not validator.check(ones * 1.1, ones)[0]


# ---- convolution -----------------------------------------------------------------------------------------------------

PROBLEM = {"N": 2, "C": 8, "K": 12, "G": 2, "Hi": 7, "Wi": 6, "Y": 3, "X": 3, "pad_h": 1, "stride_w": 2}
GEOMETRY = {"stride": (1, 2), "padding": (1, 0)}


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_three_directions(dtype):
    rng = np.random.default_rng(5)
    configs = [GroupedConvKernelConfig(variant=variant, dtype=dtype, arch=CPU)
               for variant in ("forward", "bwd_data", "bwd_weight")]
    paths = setup_multiple_grouped_conv_dispatchers(configs)
    assert all(f"2d_{dtype}_" in path.name for path in paths)
    shapes = GroupedConvProblem(**PROBLEM)
    x, w, dy = (rng.uniform(-1, 1, shape).astype(NUMPY[dtype])
                for shape in (shapes.input_shape(), shapes.weight_shape(), shapes.output_shape()))
    wanted = [forward(x, w, **GEOMETRY), backward_data(dy, w, (7, 6), **GEOMETRY),
              backward_weight(x, dy, (3, 3), **GEOMETRY)]
    for config, path, operands, want in zip(configs, paths, ((x, w), (dy, w), (x, dy)), wanted):
        problem = GroupedConvProblem(**PROBLEM, direction=config.variant)
        result = GpuGroupedConvRunner(path, repeat=1).run(*operands, problem)
        assert result.success and result.time_ms > 0, result.error
        assert result.output.dtype == NUMPY[dtype] and f"_{dtype}_" in config.name
        assert_close(result.output, want)


def test_a_problem_says_what_follows():
    problem = GroupedConvProblem(**PROBLEM)
    assert (problem.Do, problem.Ho, problem.Wo) == (1, 7, 2) and not problem.is_3d
    assert problem.flops == 2 * 2 * 7 * 2 * 12 * 4 * 9
    deep = GroupedConvProblem(N=1, C=4, K=4, Di=5, Hi=6, Wi=7, Z=3, Y=3, X=3)
    assert deep.is_3d and deep.output_shape() == (1, 3, 4, 5, 1, 4)
    with pytest.raises(ValueError, match="groups_divide"):
        GroupedConvProblem(N=1, C=5, K=4, G=2, Hi=4, Wi=4)
    with pytest.raises(ValueError, match="variant: 'sideways'"):
        GroupedConvProblem(N=1, C=4, K=4, Hi=4, Wi=4, direction="sideways")
    assert "input (2, 7, 6, 2, 4)" in grouped_conv_utils.format_grouped_conv_summary(problem)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "sm_80", "sm_90a", CPU])
@pytest.mark.parametrize("variant", ["forward", "bwd_data", "bwd_weight"])
def test_default_configs_are_valid(arch, variant):
    config = grouped_conv_utils.get_grouped_conv_default_config(variant=variant, arch=arch)
    assert grouped_conv_utils.validate_grouped_conv_config(config).is_valid
    assert grouped_conv_utils.validate_grouped_conv_config(config.to_dict()).is_valid
    assert GroupedConvKernelConfig.from_dict(config.to_dict()).name == config.name


def test_a_wrong_config_is_reported_and_corrected():
    config = GroupedConvKernelConfig(variant="2d_fwd", arch="gfx942", pipeline="compv4", scheduler="interwave", wave_m=3)
    assert (config.variant, config.ndim_spatial) == ("forward", 2)
    checked = grouped_conv_utils.validate_grouped_conv_config(config)
    assert not checked and any("wave_listed" in error for error in checked.errors) and checked.suggested_fixes
    mended, report = grouped_conv_utils.auto_correct_grouped_conv_config(config)
    assert report.is_valid and len(report.warnings) >= 2 and mended.scheduler == "intrawave"
    as_dict, _ = grouped_conv_utils.auto_correct_grouped_conv_config(config.to_dict())
    assert as_dict == mended.to_dict()
    with pytest.raises(ValueError, match="unknown fields colour"):
        GroupedConvKernelConfig.from_dict({"colour": 1})


def test_a_registry_selects_filters_and_travels_as_json():
    registry = GroupedConvRegistry("mine")
    for variant in ("forward", "bwd_data"):
        registry.add(GroupedConvKernelConfig(variant=variant, arch=CPU))
    small = GroupedConvKernelConfig(variant="forward", arch=CPU, pipeline="basic_v1")
    registry.add(small)
    registry.add(GroupedConvKernelConfig(variant="forward", arch="gfx942"))
    here = registry.filter_by_arch(CPU)
    assert len(registry) == 4 and len(here) == 3 and len(here.filter_by_variant("bwdd")) == 1
    problem = GroupedConvProblem(**PROBLEM)
    assert here.select(problem).variant == "forward"
    assert here.select(problem, heuristic=lambda _: [small.name]).name == small.name
    assert here.select(problem, heuristic=lambda _: ["nonsense", "_basic_v1_"]).name == small.name
    assert here.select(problem, heuristic=lambda _: ["nonsense"]).name == here.select(problem).name
    assert here.select(GroupedConvProblem(**PROBLEM, direction="bwd_weight")) is None
    copy = GroupedConvRegistry.from_json(registry.to_json())
    assert [config.name for config in copy] == [config.name for config in registry]


def test_the_direction_must_be_the_kernels():
    (path,) = setup_multiple_grouped_conv_dispatchers([GroupedConvKernelConfig(arch=CPU)])
    problem = GroupedConvProblem(**PROBLEM, direction="bwd_data")
    result = GpuGroupedConvRunner(path).run(np.ones(problem.output_shape()), np.ones(problem.weight_shape()), problem)
    assert not result.success and "direction is bwd_data" in result.error
    missing = GpuGroupedConvRunner("/nonexistent/lib.so")
    assert not missing.is_available() and not missing.run(1, 2, GroupedConvProblem(**PROBLEM)).success


LAZY = """
import re
from tilewise.grouped_conv_utils import *
def mapped():
    with open("/proc/self/maps") as maps:
        return set(re.findall(r"\\S*(?:libcuda|libnvrtc|libamdhip|kernel\\.so|libdispatcher)\\S*", maps.read()))
(path,) = setup_multiple_grouped_conv_dispatchers([get_grouped_conv_default_config(arch={arch!r}, dtype="fp32")])
runner = GpuGroupedConvRunner(path)
problem = GroupedConvProblem(N=1, C=4, K=4, Hi=4, Wi=4, Y=3, X=3)
assert runner._lib is None and mapped() == set(), mapped()
import numpy as np
result = runner.run(np.ones(problem.input_shape()), np.ones(problem.weight_shape()), problem)
assert result.success and (result.output == 36).all(), result.error
assert any("kernel.so" in path for path in mapped()), "the check above could not fail"
"""


def test_a_runner_maps_no_library_and_no_driver_before_it_runs():
    result = subprocess.run([sys.executable, "-c", LAZY.format(arch=CPU)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_no_gpu_is_an_error_that_names_the_way_out(monkeypatch):
    monkeypatch.delenv("TILEWISE_COMPAT_DEVICE", raising=False)
    monkeypatch.setattr(_compat_device, "_amd_arch", lambda: None)
    monkeypatch.setattr(_compat_device, "_nvidia_arch", lambda: None)
    with pytest.raises(tilewise.DeviceError, match=f"no GPU was found.*{CPU}"):
        dispatcher_common.detect_gpu_arch()
    assert dispatcher_common.default_arch() == CPU
    assert dispatcher_common.detect_gpu_arch(fallback="gfx950") == dispatcher_common.detect_gpu_arch("gfx950") == "gfx950"
    monkeypatch.setattr(_compat_device, "_amd_arch", lambda: "gfx942")
    assert dispatcher_common.detect_gpu_arch() == dispatcher_common.default_arch() == "gfx942"


def test_single_choices_are_judged_by_the_library():
    assert dispatcher_common.validate_wave_config([2, 2, 1], "gfx942") == (True, "")
    valid, why = dispatcher_common.validate_wave_config([3, 2, 1], "gfx942")
    assert not valid and "2x2x1" in why
    assert dispatcher_common.validate_wave_config(dispatcher_common.auto_correct_wave([3, 2, 1], "gfx942"), "gfx942")[0]
    assert dispatcher_common.validate_warp_tile_config([32, 32, 16], "gfx942", "bf16")[0]
    assert not dispatcher_common.validate_warp_tile_config([32, 32, 7], "gfx942", "bf16")[0]
    assert not dispatcher_common.validate_trait_combo("compv4", "cshuffle", "interwave", "gfx942")[0]
    assert dispatcher_common.validate_trait_combo("mem", "cshuffle", "interwave", "gfx942")[0]
    assert dispatcher_common.auto_correct_trait("compv4", "interwave", "gfx942") == ("compv4", "intrawave")


def test_messages_are_plain_where_the_output_is_no_terminal(capsys):
    dispatcher_common.print_phase(1, "build")
    dispatcher_common.print_success("done")
    dispatcher_common.print_error("not done")
    assert capsys.readouterr().out == "\n[1] build\n  OK done\n  FAIL not done\n"


def test_cleaning_up_removes_names_and_keeps_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", os.fspath(tmp_path))
    setup = setup_gemm_dispatcher(KernelConfig(dtype_a="fp32", gfx_arch=CPU))
    built = setup.library_path.resolve()
    assert dispatcher_common.cleanup_generated_kernels() == 1
    assert not setup.library_path.exists() and built.is_file()


@pytest.mark.parametrize("module", ["dispatcher_common", "ctypes_utils", "grouped_conv_utils"])
def test_the_originals_imports_work(module):
    code = (f"import sys; sys.path.insert(0, {os.fspath(ROOT / 'python')!r})\nfrom {module} import *\n"
            f"import {module}, tilewise.{module} as here\n"
            "assert all(getattr(here, name) is globals()[name] for name in here.__all__)\n")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
