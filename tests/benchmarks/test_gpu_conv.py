# SPDX-License-Identifier: MIT
"""The parts of benchmarks/gpu_conv.py that need neither torch nor a GPU: layers and tables."""
import pathlib
import sys

import pytest

import tilewise

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import gpu_conv  # noqa: E402
import gpu_conv_problems  # noqa: E402

LINE = "conv_fwd:n=2,g=2,c=8,k=6,in=9x7,filter=3x1,stride=2x1,pad=1x0,dtype=bf16,layout=nhwgc"


def test_a_layer_is_computed_in_every_direction():
    forward, data, weight = gpu_conv_problems.parse_cases(f"# a comment\n\n{LINE}  # odd\n")
    assert [case.op for case in (forward, data, weight)] == list(gpu_conv_problems.DIRECTIONS)
    assert forward.output == (5, 7) and forward.family == "odd"
    assert forward.shapes == ((2, 9, 7, 2, 4), (2, 3, 3, 1, 4), (2, 5, 7, 2, 3))
    assert data.shapes == (forward.y_shape, forward.w_shape, forward.x_shape)
    assert weight.shapes == (forward.x_shape, forward.y_shape, forward.w_shape)
    assert (forward.k, data.k, weight.k) == (12, 9, 70) and forward.flops == data.flops == 2 * 2 * 35 * 6 * 12


def test_every_layer_of_the_list_is_a_problem():
    cases = gpu_conv_problems.parse_cases((ROOT / "benchmarks/problems/conv_gpu.txt").read_text(encoding="utf-8"))
    assert len(cases) > 150
    for case in cases[::7]:
        assert tilewise.select(case.text, arch="sm_90a").kernel, case.text


@pytest.mark.parametrize("text, word", [("gemm:m=1", "convolutions"), (LINE.replace(",pad=1x0", ""), "pad="),
                                        (LINE.replace("bf16", "int8"), "dtype"), (LINE + ",beta=1", "beta="),
                                        (LINE.replace("n=2", "n=two"), "whole numbers")])
def test_a_bad_line_is_named(text, word):
    with pytest.raises(ValueError, match=word):
        gpu_conv_problems.parse_case(text)


def test_the_summary_counts_only_what_is_right():
    good = {"problem": LINE, "family": "odd", "status": "ok", "kernel": "k", "ours_us": 2.0, "peers_us": {"cudnn": 8.0},
            "roof": 0.5, "model_us": 4.0}
    bad = {"problem": LINE, "family": "odd", "status": "wrong", "reason": "a | b"}
    text = gpu_conv.summary_table([good, bad])
    assert text.splitlines()[-1].split("|")[2:5] == text.splitlines()[-2].split("|")[2:5]
    assert "4.00" in text and text.rstrip("| ").endswith("1")
    assert "a / b" in gpu_conv.markdown([good, bad], {"device": "none"}, "measure")
