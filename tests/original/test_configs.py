# SPDX-License-Identifier: MIT
"""The original's configs and problems: what a user of the original writes means here what it means there."""
import inspect
import json

import ml_dtypes
import numpy as np
import pytest

import tilewise
from tilewise import ctypes_utils, dispatcher_common, grouped_conv_utils
from tilewise.ctypes_utils import KernelConfig, setup_gemm_dispatcher
from tilewise.grouped_conv_utils import (GpuGroupedConvRunner, GroupedConvKernelConfig, GroupedConvProblem,
                                         GroupedConvRegistry, auto_correct_grouped_conv_config,
                                         validate_grouped_conv_config)

CPU = dispatcher_common.host_cpu_arch()
DTYPES = ["fp16", "bf16", "fp32", "fp8", "bf8", "int8"]


def arch_of(name):
    return tilewise._library.call("tilewise_archs", name)["archs"][0]


# ---- a config for every type and pipeline ----------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80", CPU])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_listed_pipeline_has_a_kernel_of_the_type(arch, dtype):
    """fp32 needs a warpgroup for compv5 and compv6, which takes it as tf32 alone: refused, since nobody asked for that."""
    spec = arch_of(arch)
    if dtype not in spec["warp_tiles"]:
        setup = setup_gemm_dispatcher(KernelConfig(dtype_a=dtype, gfx_arch=arch))
        assert not setup.success and f"dtype_pair: have {dtype} x {dtype}" in setup.error and setup.config.dtype_a == dtype
        return
    for pipeline, facts in spec["pipelines"].items():
        config = KernelConfig(dtype_a=dtype, pipeline=pipeline, gfx_arch=arch)
        mended, _, changes = ctypes_utils.auto_correct_kernel_config(config)
        kernel = tilewise.KernelConfig(mended.to_library())
        if dtype == "fp32" and facts.get("producers"):
            assert mended is config and not changes and not kernel.available
            continue
        assert kernel.available and kernel.check().valid, kernel.name
        assert (mended.pipeline, mended.dtype_a, mended.gfx_arch) == (pipeline, dtype, arch)
        assert mended.dtype_b == dtype and mended.dtype_c and mended.dtype_acc


@pytest.mark.parametrize("pipeline", ["compv5", "compv6"])
def test_a_pipeline_that_the_arch_does_not_have_is_refused(pipeline):
    setup = setup_gemm_dispatcher(KernelConfig(pipeline=pipeline, gfx_arch="sm_80"))
    assert not setup.success and f"pipeline: have {pipeline} for gemm, need one of" in setup.error
    assert setup.lib is None and setup.config.pipeline == pipeline and not setup.corrections
    with pytest.warns(UserWarning, match="pipeline"):
        registry = ctypes_utils.Registry()
        registry.register_kernel(KernelConfig(pipeline=pipeline, gfx_arch="sm_80"))
    assert len(registry) == 1 and len(registry.to_library()) == 0


# ---- the original's words --------------------------------------------------------------------------------------------


def test_fixes_are_in_the_originals_words():
    gemm = ctypes_utils.validate_kernel_config(KernelConfig(gfx_arch="gfx942", wave_m=3, warp_m=7, scheduler="interwave"))
    assert {"wave_m", "wave_n", "wave_k", "warp_m", "warp_n", "warp_k", "scheduler"} <= set(gemm.suggested_fixes)
    assert gemm.suggested_fixes["scheduler"] == "intrawave" and isinstance(gemm.suggested_fixes["wave_m"], int)
    conv = validate_grouped_conv_config(GroupedConvKernelConfig(arch="gfx942", wave_m=3, warp_tile_m=7))
    assert {"wave_m", "wave_n", "wave_k", "warp_tile_m", "warp_tile_n", "warp_tile_k"} <= set(conv.suggested_fixes)
    fixed = {**dict(wave_m=3, warp_tile_m=7), **{key: value for key, value in conv.suggested_fixes.items()}}
    assert validate_grouped_conv_config(GroupedConvKernelConfig(arch="gfx942", **fixed))


def test_dicts_and_lists_are_configs():
    flat = {"dtype_a": "bf16", "gfx_arch": CPU, "tile_m": [64], "pipeline": ["mem"]}
    nested = {"dtype_a": "bf16", "gfx_arch": CPU, "tile_config": {
        "tile_m": {"values": [64]}, "warp_m": [2], "warp_n": [1], "warp_k": [1], "warp_tile_m": [4], "warp_tile_n": [64],
        "warp_tile_k": [1]}, "trait_config": {"pipeline": {"values": ["mem"]}}}
    assert KernelConfig.of(flat).tile_m == 64 and KernelConfig.of(flat).pipeline == "mem"
    assert (KernelConfig.of(nested).wave_str, KernelConfig.of(nested).warp_str) == ("2x1x1", "4x64x1")
    assert not ctypes_utils.validate_kernel_config(flat) and ctypes_utils.auto_correct_kernel_config(flat)[1]
    with pytest.raises(ValueError, match="tile_m: 2 values"):
        KernelConfig.of({"tile_m": [64, 128]})
    with pytest.raises(ValueError, match="unknown fields colour"):
        KernelConfig.of({"colour": 1})
    config = GroupedConvKernelConfig(arch=CPU, wave_m=3)
    lists = config.to_dict()
    assert lists["tile_config"]["wave_m"] == [3] and lists["trait_config"]["num_wave_groups"] == [1]
    assert not validate_grouped_conv_config(lists)
    corrected, result = auto_correct_grouped_conv_config(lists)
    assert result and validate_grouped_conv_config(corrected) and GroupedConvKernelConfig(**{
        key: corrected["tile_config"][key] for key in ("wave_m", "tile_m")}, arch=CPU).wave_m == result.config.wave_m


def test_missing_keys_are_named():
    errors = validate_grouped_conv_config({}).errors
    assert [error.split(": ")[1] for error in errors] == ["tile_config", "trait_config", "variant", "ndim_spatial", "arch",
                                                          "layout"]
    assert not auto_correct_grouped_conv_config({})[1]
    unknown = validate_grouped_conv_config({**GroupedConvKernelConfig(arch=CPU).to_dict(), "arch": "sm_1"})
    assert not unknown and "sm_1" in unknown.errors[0]


@pytest.mark.parametrize("arch", ["sm_90a", CPU])
def test_one_wave_group_means_none(arch):
    config = GroupedConvKernelConfig(arch=arch, pipeline="compv3", num_wave_groups=1)
    assert config.num_wave_groups == 1 and "producer_waves" not in config.to_library()
    assert validate_grouped_conv_config(config)
    if arch == "sm_90a":
        loading = GroupedConvKernelConfig(arch=arch, pipeline="compv6", num_wave_groups=1)
        assert validate_grouped_conv_config(loading) and loading.num_wave_groups == loading.to_library()["producer_waves"] + 1


def test_problems_have_the_originals_order_and_defaults():
    names = list(inspect.signature(GroupedConvProblem).parameters)
    assert names[:10] == ["N", "C", "K", "G", "Hi", "Wi", "Di", "Y", "X", "Z"]
    problem = GroupedConvProblem()
    assert [getattr(problem, name) for name in names[:10]] == [1, 64, 128, 1, 28, 28, 1, 3, 3, 1]
    assert problem.input_shape() == (1, 28, 28, 1, 64) and problem.gflops == pytest.approx(problem.flops / 1e9)


def test_the_originals_registry_is_read():
    """As the original writes it: no pads, no options, and names of its own."""
    text = json.dumps({"name": "theirs", "kernels": [{
        "name": "grouped_conv_forward_fp16_2d_128x128x32_compv3_intrawave",
        "signature": {"variant": "forward", "dtype": "fp16", "ndim_spatial": 2, "layout": "nhwgc"},
        "algorithm": {"tile_m": 128, "tile_n": 128, "tile_k": 32, "wave": "2x2x1", "warp": "32x32x16", "pipeline": "compv3",
                      "epilogue": "cshuffle", "scheduler": "intrawave", "vector_sizes": [4, 8, 8], "block_per_cu": 1,
                      "num_wave_groups": 1, "num_groups_to_merge": 1}, "arch": "gfx942"}]})
    registry = GroupedConvRegistry.from_json(text)
    (config,) = registry.kernels
    assert (config.tile_str, config.wave_str, config.warp_str, config.vec_str) == ("128x128x32", "2x2x1", "32x32x16", "4x8x8")
    again = GroupedConvRegistry.from_json(registry.to_json(indent=None))
    assert again.kernels == registry.kernels and again.name == "theirs"


def test_what_is_corrected_is_told():
    registry = GroupedConvRegistry()
    with pytest.warns(UserWarning, match="wave_listed"):
        registry.add(GroupedConvKernelConfig(arch=CPU, wave_m=3))
    assert validate_grouped_conv_config(registry.kernels[0])
    with pytest.warns(UserWarning, match="pipeline"):
        registry.add(GroupedConvKernelConfig(arch=CPU, pipeline="compv6"))
    assert registry.select(GroupedConvProblem(C=8, K=8, Hi=6, Wi=6)).wave_m == registry.kernels[0].wave_m


# ---- where it runs ---------------------------------------------------------------------------------------------------


def test_a_variable_says_where(monkeypatch):
    monkeypatch.setenv("TILEWISE_COMPAT_DEVICE", "emulated:sm_90a")
    assert dispatcher_common.default_arch() == dispatcher_common.detect_gpu_arch() == KernelConfig().gfx_arch == "sm_90a"
    assert dispatcher_common.device_of("sm_90a") == "emulated:sm_90a" and dispatcher_common.device_of(CPU) == "cpu"
    assert dispatcher_common.device_of("sm_80") == "cuda:0"
    monkeypatch.setenv("TILEWISE_COMPAT_DEVICE", "cuda:1")
    assert dispatcher_common.device_of("sm_90a") == "cuda:1"
    monkeypatch.setenv("TILEWISE_COMPAT_DEVICE", "cpu")
    assert dispatcher_common.default_arch() == dispatcher_common.detect_gpu_arch() == CPU
    monkeypatch.setenv("TILEWISE_COMPAT_DEVICE", "abacus")
    with pytest.raises(tilewise.DeviceError, match="no device 'abacus' here; name cpu, cuda:0"):
        dispatcher_common.default_arch()


def test_a_runner_without_a_library_chooses(monkeypatch):
    monkeypatch.setenv("TILEWISE_COMPAT_DEVICE", "cpu")
    problem = GroupedConvProblem(N=1, C=4, K=4, Hi=4, Wi=4)
    runner = GpuGroupedConvRunner(repeat=1)
    x, w = np.ones(problem.input_shape(), np.float32), np.ones(problem.weight_shape(), np.float32)
    out = np.zeros(problem.output_shape(), np.float64)
    for words in ({"problem": problem}, {"prob": problem}):
        result = runner.run(input_np=x, weight_np=w, output_np=out, **words)
        assert result.success and result.output is out and (out == 36).all(), result.error
    assert "output_np" in runner.run(x, w, problem, np.zeros(3)).error
    assert "needs a problem" in runner.run(x, w).error


def test_the_tables_are_the_archs():
    data = dispatcher_common.get_arch_filter_data()
    assert [2, 2, 1] in data["warp_combos"]["gfx942"] and [32, 32, 16] in data["warp_tile_combos"]["gfx942"]["fp16_fp16_fp32"]
    assert ("compv4", "cshuffle", "interwave") in data["trait_unsupported"]
    assert ("mem", "cshuffle", "interwave") not in data["trait_unsupported"]
    assert ctypes_utils.SUPPORTED_DTYPES["int8", "int8"]["acc"] == "int32" and "bf8" in ctypes_utils.VALID_DTYPES


@pytest.mark.compiles
def test_raw_words_are_the_kernels_bits(monkeypatch):
    """As the original's callers hand over bf16: in 16-bit words."""
    monkeypatch.setenv("TILEWISE_COMPAT_DEVICE", "cpu")
    kernel = tilewise.kernels(op="gemm", dtype="bf16", arch=CPU, rule_set="builtin")[0]
    setup = setup_gemm_dispatcher(KernelConfig.from_library(tilewise.KernelConfig(kernel.name)))
    assert setup.success, setup.error
    a, b = np.full((3, 8), 0.5, ml_dtypes.bfloat16), np.full((5, 8), 2, ml_dtypes.bfloat16)
    c = np.zeros((3, 5), np.uint16)
    status, _ = setup.lib.run_gemm(a.view(np.uint16), b.view(np.uint16), c, 3, 5, 8)
    assert status == 0 and (c.view(ml_dtypes.bfloat16) == 8).all()
    with pytest.warns(UserWarning, match="run_gemm"):
        assert setup.lib.run_gemm(a, b, c, 3, 6, 8)[0] == -1


@pytest.mark.compiles
def test_a_preshuffled_b_gives_the_product(monkeypatch):
    """The runner packs B in its kernel's order, so B is handed over as it is."""
    monkeypatch.setenv("TILEWISE_COMPAT_DEVICE", "cpu")
    setup = setup_gemm_dispatcher(KernelConfig(variant="preshuffle", pipeline="preshufflev2"))
    assert setup.success and setup.config.pipeline == "preshuffle", setup.error
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (40, 64)).astype(np.float16), rng.uniform(-1, 1, (64, 96)).astype(np.float16)
    result = setup.dispatcher.run(a, ctypes_utils.preshuffle_weight_matrix(b, 32, 16, "gfx942"), 40, 96, 64)
    assert result.success, result.error
    np.testing.assert_allclose(result.output.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), atol=2e-2)
    with pytest.raises(ValueError, match="N is 96; need a multiple of the warp tile's 64"):
        ctypes_utils.preshuffle_weight_matrix(b, 64, 16)
