# SPDX-License-Identifier: MIT
"""A registry as JSON: written, read back, compared; and a kernel that went that way runs."""
import json
import tempfile
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))

import numpy as np
from example import Checks, parse, parser, random, run, wide

import tilewise


def main():
    flags = parser(__doc__, ["fp32", "bf16", "fp16"])
    flags.add_argument("--output", help="the file to write (default: a temporary one)")
    flags.add_argument("--rule-set", default="tiny", help="the kernels to export (default: tiny)")
    flags.add_argument("--list", action="store_true", help="print the kernels' names")
    args = parse(flags)
    checks = Checks()
    registry = tilewise.Registry("example").add_rule_set(args.rule_set, op="gemm", dtype=args.dtype, arch=args.arch)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(args.output or f"{folder}/registry.json")
        path.write_text(registry.export(statistics=True))
        data = json.loads(path.read_text())
        print(f"{path}: {data['count']} kernels, {json.dumps(data['statistics'])}")
    if args.list:
        print("\n".join(kernel["name"] for kernel in data["kernels"]))
    copy = tilewise.Registry("copy")
    checks.that("all are read back", copy.import_json(json.dumps(data)) == len(registry) > 0)
    checks.that("and are the same", [kernel.id for kernel in copy] == [kernel.id for kernel in registry])

    rng = np.random.default_rng(6)
    a, b = random(rng, (33, 40), args.dtype), random(rng, (29, 40), args.dtype)
    problem = tilewise.Problem("gemm", m=33, n=29, k=40, dtype=args.dtype)
    dispatcher = tilewise.Dispatcher(args.device, arch=args.arch, registry=copy)
    plan = dispatcher.select(problem)
    checks.that(f"{plan.kernel} is one of them", plan.kernel in copy)
    checks.close("its result", dispatcher.run_host(problem, a, b), wide(a) @ wide(b).T, 40)
    checks.finish()


if __name__ == "__main__":
    run(main)
