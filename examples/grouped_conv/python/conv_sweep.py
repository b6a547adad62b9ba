# SPDX-License-Identifier: MIT
"""The common part of examples 10 to 12: many configs on a small problem, each in a process of its own, so that a kernel that crashes
is one line and the sweep goes on. A case is JSON; --single-test runs one. What the library refuses ahead needs no process.

  OK                   built, run, and right
  UNSUPPORTED(reason)  the library refuses it: the rule that it breaks, what it has and what the rule needs
  FAIL                 it did not build, did not run, or gave something wrong
  CRASH                its process ended otherwise
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

VARIANTS = {"forward": "conv_fwd", "bwd_data": "conv_bwd_data", "bwd_weight": "conv_bwd_weight"}
DIRECTIONS = list(VARIANTS)
LIMIT_S = 120


def problem_for(config):
    """A small problem of the kind that the config is for; a reduction that is split has enough steps for every tile."""
    special = config.options.get("specialization")
    is_split = int(config.options.get("split_k", 1)) > 1
    size = 1 if special in ("1x1", "1x1s1") else 3
    channels = (1 if special == "depthwise" else 16 if (config.num_groups_to_merge or 1) > 1 else
                128 if is_split else 64)  # of a group
    deep = {"Di": 8, "Z": size, "pad_d": size // 2} if config.ndim_spatial == 3 else {}
    images = (3 if is_split else 1) * (1 if deep else 8)
    return GroupedConvProblem(N=images, G=128 // channels, C=128, K=128, Hi=8, Wi=8, Y=size, X=size, pad_h=size // 2,
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


def refusal_of(case):
    """The rule that the case breaks, by itself or with its problem, what it has and what the rule needs; None where it may
    run."""
    try:
        config = config_for(case)
    except ValueError as error:  # the arch has no kernels of this direction and type
        return str(error)
    checked = tilewise.check(config.to_library())
    kernel = tilewise.KernelConfig(config.to_library())
    broken = checked.violations or ([checked.without_code] if checked.without_code else [])
    if not broken:
        registry = tilewise.Registry("one")
        registry.add(kernel)
        wanted = problem_for(config).problem(config.dtype, config.layout)
        plan = tilewise.Dispatcher(None, arch=config.arch, registry=registry).select(wanted)
        broken = [] if plan else plan.rejected
    return f"{broken[0].rule}: have {broken[0].have}, need {broken[0].need}" if broken else None


def run_single(text):
    """One case, in this process: prints its outcome as the last line."""
    case = json.loads(text)
    reason = refusal_of(case)
    if reason is not None:
        print(f"UNSUPPORTED({reason})")
        return
    config = config_for(case)
    problem = problem_for(config)
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
    reason = refusal_of(case)
    if reason is not None:
        return f"UNSUPPORTED({reason})"
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
    flags = parser(text, ["fp32", "bf16", "fp16", "fp8", "bf8", "int8"])
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
        print(f"  {' '.join(f'{key}={value}' for key, value in shown.items())}\n      {outcome}")
    return list(zip(cases, outcomes))


def listed(args, *fields):
    """Which values of these fields kernels of the whole rule set have together, for each direction and dimension."""
    found = set()
    for direction, ndim in args.places:
        for kernel in tilewise.kernels(op=VARIANTS[direction], arch=args.arch, dtype=args.dtype, rule_set="full"):
            is_strict = kernel.config.get("math", "strict") == "strict"  # as the problems are
            if kernel.available and kernel.config["ndim"] == ndim and is_strict:
                found.add((direction, ndim, *(kernel.config[field] for field in fields)))
    return found


def supported(results, *fields):
    """Which of them ran."""
    return {(case["variant"], case["ndim_spatial"], *(case[field] for field in fields))
            for case, outcome in results if outcome == "OK"}


def conclude(results, what, have, need):
    """Ends the example: no failure, no crash, and supported is what should be, which is something. What is not has its reason
    above."""
    checks = Checks()
    bad = [outcome for _, outcome in results if outcome.split()[0] in ("FAIL", "CRASH")]
    checks.that("no case failed or crashed", not bad, "; ".join(bad[:3]))
    checks.that(f"{len(have)} {what} supported of {len(results)} cases", len(have) > 0)
    missing, more = sorted(need - have), sorted(have - need)
    checks.that("as many as there are kernels for", not missing and not more, f"missing {missing}, more {more}"
                if missing or more else "")
    checks.finish()
