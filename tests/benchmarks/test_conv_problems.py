# SPDX-License-Identifier: MIT
"""The shapes that benchmarks/cpu_conv compares: each can be computed in every direction and type, and is there once."""
import pathlib

import pytest

import tilewise

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES = (ROOT / "benchmarks/problems/conv_cpu.txt").read_text().splitlines()
SHAPES = [line.split("#")[0].strip() for line in LINES if line.startswith("conv")]
KINDS = [("conv_fwd", "fp32"), ("conv_fwd", "bf16"), ("conv_fwd", "int8"), ("conv_bwd_data", "fp32"),
         ("conv_bwd_data", "bf16"), ("conv_bwd_weight", "fp32"), ("conv_bwd_weight", "bf16")]


def groups_of(shape):
    fields = dict(field.split("=") for field in shape.split(":", 1)[1].split(","))
    return int(fields["g"]), int(fields["c"])


def test_shapes_are_different_and_of_every_family():
    assert len(set(SHAPES)) == len(SHAPES) > 50
    families = {"dense" if g == 1 else "depthwise" if g == c else "grouped" for g, c in map(groups_of, SHAPES)}
    assert families == {"dense", "grouped", "depthwise"}
    assert {shape.split("layout=")[1] for shape in SHAPES} == {"nwgc", "nhwgc", "ndhwgc"}


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_shapes_have_kernels(number):
    op, dtype = KINDS[number]
    for shape in SHAPES[number::len(KINDS)]:  # every shape in one direction and type: a choice among all takes a while
        problem = shape.replace("conv_fwd:", op + ":").replace("dtype=fp32", "dtype=" + dtype)
        plan = tilewise.select(problem, arch="cpu-avx512")
        assert plan.kernel, problem
