# SPDX-License-Identifier: MIT
"""A grouped-convolution program as a user of the original writes it, call by call from its documentation. Only the arch is
an argument: conv_program.py ARCH [VARIANT...].
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "examples" / "common"))

import numpy as np
from conv_reference import backward_data, backward_weight, forward
from grouped_conv_utils import (GpuGroupedConvRunner, GroupedConvCodegenRunner, GroupedConvDispatcherLib,
                                GroupedConvKernelConfig, GroupedConvProblem, GroupedConvProblemC, GroupedConvRegistry,
                                auto_correct_grouped_conv_config, format_grouped_conv_summary,
                                get_grouped_conv_default_config, setup_multiple_grouped_conv_dispatchers,
                                validate_grouped_conv_config)

ARCH = sys.argv[1]
VARIANTS = sys.argv[2:] or ["forward", "bwd_data", "bwd_weight"]


def config_of(variant):
    """Everything that the original's config has, at its defaults but for a tile that its own rules accept."""
    return GroupedConvKernelConfig(variant=variant, ndim_spatial=2, dtype="fp16", layout="nhwgc", arch=ARCH, tile_m=128,
                                   tile_n=128, tile_k=32, wave_m=2, wave_n=2, wave_k=1, warp_tile_m=32, warp_tile_n=32,
                                   warp_tile_k=16, pipeline="compv3", epilogue="cshuffle", scheduler="intrawave",
                                   vector_size_a=4, vector_size_b=8, vector_size_c=8, block_per_cu=1, num_wave_groups=1,
                                   num_groups_to_merge=1, pad_m=True, pad_n=True, pad_k=True, double_smem_buffer=False,
                                   split_image=False, explicit_gemm=False, two_stage=False)


def configs():
    """Validation and correction, of objects, of dicts and of dicts with lists."""
    config = config_of("2d_fwd")
    assert config.variant == "forward" and config.num_wave_groups == 1
    assert (config.tile_str, config.wave_str, config.warp_str, config.vec_str) == ("128x128x32", "2x2x1", "32x32x16", "4x8x8")
    config.print_config()
    as_dict = config.to_dict()
    assert as_dict["tile_config"]["tile_m"] == [128] and as_dict["trait_config"]["pipeline"] == ["compv3"]
    checked = validate_grouped_conv_config(as_dict)
    checked.print_result()
    assert checked.is_valid == validate_grouped_conv_config(config).is_valid and checked.variant == "forward"
    corrected, result = auto_correct_grouped_conv_config(as_dict)
    assert result.is_valid and validate_grouped_conv_config(corrected).is_valid
    assert corrected["trait_config"]["pipeline"] in ("compv3", ["compv3"])
    if not checked.is_valid:
        assert set(checked.suggested_fixes) & {"wave_m", "warp_tile_m", "tile_m", "epilogue", "vector_size_a"}
    assert "tile_config" in " ".join(validate_grouped_conv_config({}).errors)
    default = get_grouped_conv_default_config(variant="forward", ndim_spatial=2, arch=ARCH)
    print(format_grouped_conv_summary(default), format_grouped_conv_summary(as_dict))
    return config


def problems():
    """Positions and defaults."""
    problem = GroupedConvProblem(1, 64, 128, 2, 14, 12, 1, 3, 3, 1, pad_h=1, pad_w=1)
    assert (problem.N, problem.C, problem.K, problem.G, problem.Hi, problem.Wi) == (1, 64, 128, 2, 14, 12)
    assert (problem.Di, problem.Y, problem.X, problem.Z) == (1, 3, 3, 1) and (problem.Ho, problem.Wo) == (14, 12)
    usual = GroupedConvProblem()
    assert (usual.N, usual.C, usual.K, usual.G, usual.Hi, usual.Wi, usual.Y, usual.X) == (1, 64, 128, 1, 28, 28, 3, 3)
    assert usual.gflops == usual.flops / 1e9
    usual.print_problem()
    try:
        GroupedConvProblem(C=5, K=4, G=2)
    except ValueError as error:
        print("refused:", error)
    else:
        raise AssertionError("C that G does not divide")
    plain = GroupedConvProblemC.from_problem(problem)
    assert (plain.N, plain.G, plain.C, plain.K, plain.input_h, plain.direction) == (1, 2, 64, 128, 14, 0)


def check(variant, runner, **arguments):
    """One small problem, by position and by keyword."""
    problem = GroupedConvProblem(N=1, C=16, K=16, G=2, Hi=5, Wi=6, Y=3, X=3, pad_h=1, pad_w=1, direction=variant)
    rng = np.random.default_rng(3)
    x, w, dy = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in
                (problem.input_shape(), problem.weight_shape(), problem.output_shape()))
    first, second, want = {"forward": (x, w, lambda: forward(x, w, 1, 1)),
                           "bwd_data": (dy, w, lambda: backward_data(dy, w, (5, 6), 1, 1)),
                           "bwd_weight": (x, dy, lambda: backward_weight(x, dy, (3, 3), 1, 1))}[variant]
    out = np.full(want().shape, np.nan, np.float16)
    result = runner.run(input_np=first, weight_np=second, problem=problem, output_np=out, verbose=True)
    assert result.success and result.time_ms > 0 and result.tflops > 0, result.error
    assert result.output is out
    np.testing.assert_allclose(out.astype(np.float64), want(), rtol=0, atol=4e-2)


def kernels():
    """A registry with a config for each direction: to JSON and back, selected, built, run."""
    registry = GroupedConvRegistry("mine")
    for variant in VARIANTS:
        registry.add(config_of(variant))
    registry.print_registry()
    assert len(registry) == len(VARIANTS)
    data = json.loads(registry.to_json(indent=4))
    assert {"name", "signature", "algorithm", "arch"} <= set(data["kernels"][0])
    copy = GroupedConvRegistry.from_json(registry.to_json())
    assert [config.name for config in copy.kernels] == [config.name for config in registry.kernels]
    assert len(copy.filter_by_variant(VARIANTS[0])) == 1 and len(copy.filter_by_arch(ARCH)) == len(VARIANTS)
    problem = GroupedConvProblem(N=1, C=16, K=16, G=2, Hi=5, Wi=6, Y=3, X=3, direction=VARIANTS[0])
    assert registry.select(problem).variant == VARIANTS[0]
    assert registry.select(problem, heuristic=lambda _: ["nothing", "compv3"]).pipeline == "compv3"
    runners = registry.build(verbose=True, max_workers=None)
    for variant in VARIANTS:
        runner = runners[variant, 2]
        assert runner.is_available() and runner.get_init_error() is None and runner.get_init_traceback() is None
        assert Path(runner.library_path).exists() and len(runner.lib.kernel_names()) == 1
        check(variant, runner)
        runner.cleanup()
    (path,) = setup_multiple_grouped_conv_dispatchers([config_of(VARIANTS[0])], verbose=True, max_workers=2)
    check(VARIANTS[0], GpuGroupedConvRunner(lib_path=str(path)))
    assert GroupedConvCodegenRunner(max_workers=2).generate_and_compile_parallel(registry.kernels[:1]) == [path]


def any_kernel():
    """A runner without a library chooses for itself."""
    runner = GpuGroupedConvRunner()
    check("forward", runner)
    assert runner.is_available() and runner.lib.kernel_count() == len(runner.lib.kernel_names()) > 0
    lib = GroupedConvDispatcherLib.find()
    lib.initialize()
    assert lib.version() == "2.0.0" and lib.has_forward() and lib.has_bwd_data() and lib.has_bwd_weight()
    assert lib.is_supported(GroupedConvProblem(C=16, K=16, Hi=5, Wi=5))
    lib.cleanup()
    broken = GpuGroupedConvRunner("/nonexistent/lib.so")
    assert not broken.run(np.zeros(1), np.zeros(1), GroupedConvProblem()).success and broken.get_init_error()


if __name__ == "__main__":
    configs()
    problems()
    kernels()
    any_kernel()
    print("PASS")
