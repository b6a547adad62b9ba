# SPDX-License-Identifier: MIT
"""What examples 10 to 12 share: many configs on a small problem, each in a process of its own, so that a kernel that crashes
is one line and the sweep goes on. A case is JSON; --single-test runs one. What the library refuses ahead needs no process.

  OK                  built, run, and right
  UNSUPPORTED(rule)   the library refuses it: the rule that it breaks, or no-code where there is no kernel yet
  FAIL                it did not build, did not run, or gave something wrong
  CRASH               its process ended otherwise
"""
import concurrent.futures
import json
import os
import subprocess
import sys

import numpy as np
from conv_case import ConvCase
from example import Checks, parse, parser

import tilewise
from tilewise.grouped_conv_utils import (GpuGroupedConvRunner, GroupedConvKernelConfig, GroupedConvProblem,
                                         build_grouped_conv_libraries)

DIRECTIONS = ["forward", "bwd_data", "bwd_weight"]
LIMIT_S = 120


def problem_for(config):
    """A small problem of the kind that the config is for."""
    special = config.options.get("specialization")
    size = 1 if special in ("1x1", "1x1s1") else 3
    channels = 1 if special == "depthwise" else 16 if (config.num_groups_to_merge or 1) > 1 else 64  # of a group
    deep = {"Di": 8, "Z": size, "pad_d": size // 2} if config.ndim_spatial == 3 else {}
    return GroupedConvProblem(N=1 if deep else 8, G=128 // channels, C=128, K=128, Hi=8, Wi=8, Y=size, X=size, pad_h=size // 2,
                              pad_w=size // 2, direction=config.variant, **deep)


def fields_of(case):
    """The fields that a case names, in the library's words."""
    words = {"vector_size_a": "vector_a", "pad_m": "pad", "pad_n": "pad", "pad_k": "pad"}
    return {words.get(name, name) for name in case} | set(case.get("options", {}))


def config_for(case):
    """The case's config. What it does not name, such as the buffers that a pipeline needs, the library may correct."""
    config = GroupedConvKernelConfig(**case)
    checked = tilewise.check(config.to_library(), fix=True)
    if not checked.valid and not fields_of(case) & {change["field"] for change in checked.changes}:
        config = GroupedConvKernelConfig.from_library(tilewise.KernelConfig(checked.corrected))
    return config


def refusal(config, problem):
    """The first rule that the config, or the config with this problem, breaks; None where it may run."""
    checked = tilewise.check(config.to_library())
    if not checked.valid:
        return checked.violations[0].rule
    kernel = tilewise.KernelConfig(config.to_library())
    if not kernel.available:
        return "no-code"
    registry = tilewise.Registry("one")
    registry.add(kernel)
    wanted = problem.problem(config.dtype, config.layout)
    plan = tilewise.Dispatcher(None, arch=config.arch, registry=registry).select(wanted)
    return None if plan else plan.rejected[0].rule


def run_single(text):
    """One case, in this process: prints its outcome as the last line."""
    case = json.loads(text)
    config = config_for(case)
    problem = problem_for(config)
    rule = refusal(config, problem)
    if rule is not None:
        print(f"UNSUPPORTED({rule})")
        return
    (built,) = build_grouped_conv_libraries([config])
    if built.path is None:
        print(f"FAIL {built.error}")
        return
    checked = ConvCase(problem, config.dtype, np.random.default_rng(0))
    result = GpuGroupedConvRunner(built.path).run(*checked.operands, problem)
    if not result.success:
        print(f"FAIL {result.error}")
        return
    right = checked.check(Checks(), config.name, result.output)
    print("OK" if right else "FAIL wrong result")


def outcome_of(case, script):
    """Runs one case in a process of its own, unless the library refuses it."""
    config = config_for(case)
    rule = refusal(config, problem_for(config))
    if rule is not None:
        return f"UNSUPPORTED({rule})"
    command = [sys.executable, script, "--single-test", json.dumps(case)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"CRASH after {LIMIT_S} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return f"CRASH with {done.returncode}: {done.stderr.strip().splitlines()[-1:] or 'no output'}"
    return lines[-1]


def arguments(text, script):
    """The flags of a sweep; --single-test is served here and ends the process."""
    flags = parser(text, ["fp32", "bf16", "fp16"])
    flags.add_argument("--directions", nargs="+", choices=DIRECTIONS, default=DIRECTIONS, help="(default: all)")
    flags.add_argument("--ndim", nargs="+", type=int, choices=[2, 3], default=[2, 3], help="(default: 2 3)")
    flags.add_argument("--verbose", action="store_true", help="say more about each case")
    flags.add_argument("--single-test", metavar="JSON", help="run one case in this process")
    known, _ = flags.parse_known_args()
    if known.single_test:
        run_single(known.single_test)
        sys.exit(0)
    args = parse(flags)
    args.script = script
    args.places = [(direction, ndim) for direction in args.directions for ndim in args.ndim]
    return args


def cases_of(args, variations):
    """Each variation, some fields of a config, in each place."""
    return [{"variant": direction, "ndim_spatial": ndim, "dtype": args.dtype, "arch": args.arch, **variation}
            for direction, ndim in args.places for variation in variations]


def paired(pipelines, schedulers):
    """Every pipeline with every scheduler, as variations."""
    return [{"pipeline": pipeline, "scheduler": scheduler} for pipeline in pipelines for scheduler in schedulers]


def sweep(args, cases):
    """All cases, as many at a time as there are CPUs; [(case, outcome)] in order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(lambda case: outcome_of(case, args.script), cases))
    for case, outcome in zip(cases, outcomes):
        shown = {key: value for key, value in case.items() if args.verbose or key not in ("dtype", "arch")}
        print(f"  {outcome:32} {' '.join(f'{key}={value}' for key, value in shown.items())}")
    return list(zip(cases, outcomes))


def conclude(results, what, count, expected):
    """Ends the example: no failure, no crash, and as many supported as this arch has."""
    checks = Checks()
    bad = [outcome for _, outcome in results if outcome.split()[0] in ("FAIL", "CRASH")]
    checks.that("no case failed or crashed", not bad, "; ".join(bad[:3]))
    if expected is None:
        print(f"{count} {what} supported; this arch has no expected count")
    else:
        checks.that(f"{count} {what} supported", count == expected, f"need {expected}")
    checks.finish()
