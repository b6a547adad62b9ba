# SPDX-License-Identifier: MIT
"""Three ways to a config: as it comes, with some fields given, and corrected. All go into a registry, are built in parallel,
and run.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from conv_case import ConvCase
from example import Checks, parse, parser, run

from tilewise.grouped_conv_utils import (GroupedConvKernelConfig, GroupedConvProblem, GroupedConvRegistry,
                                         auto_correct_grouped_conv_config, format_grouped_conv_summary,
                                         get_grouped_conv_default_config, validate_grouped_conv_config)


def main():
    flags = parser(__doc__, ["bf16", "fp16", "fp32"])
    flags.add_argument("--variant", choices=["forward", "bwd_data", "bwd_weight"], default="forward")
    flags.add_argument("--ndim", type=int, choices=[2, 3], default=2, help="spatial dimensions (default: 2)")
    flags.add_argument("--workers", type=int, default=0, help="compilers at a time (default: one for each CPU)")
    args = parse(flags)
    rng, checks = np.random.default_rng(1), Checks()
    same = {"variant": args.variant, "ndim_spatial": args.ndim, "dtype": args.dtype, "arch": args.arch}
    usual = get_grouped_conv_default_config(**same)
    print(format_grouped_conv_summary(usual))
    given = GroupedConvKernelConfig(**same, pipeline="basic_v1")
    wrong = GroupedConvKernelConfig(**same, wave_m=3, scheduler="interwave")
    checks.that("the default is valid", bool(validate_grouped_conv_config(usual)))
    checks.that("a wrong one is not", not validate_grouped_conv_config(wrong))
    mended, report = auto_correct_grouped_conv_config(wrong)
    print("\n".join(f"    corrected {change}" for change in report.warnings))
    checks.that("corrected, it is", report.is_valid)
    registry = GroupedConvRegistry("basic")
    for config in (usual, given, mended):
        registry.add(config)

    deep = {"Di": 4, "Z": 3, "pad_d": 1} if args.ndim == 3 else {}
    problem = GroupedConvProblem(N=2, C=16, K=24, G=2, Hi=9, Wi=8, Y=3, X=3, pad_h=1, pad_w=1, direction=args.variant,
                                 **deep)
    print(format_grouped_conv_summary(problem))
    case = ConvCase(problem, args.dtype, rng)
    runners = registry.build(verbose=True, max_workers=args.workers)
    for config in registry:
        if not checks.that(f"built {config.name}", config.name in runners):
            continue
        result = runners[config.name].run(*case.operands, problem)
        if checks.that(f"run, {result.time_ms:.3f} ms", result.success, result.error):
            case.check(checks, "its result", result.output)
    checks.finish()


if __name__ == "__main__":
    run(main)
