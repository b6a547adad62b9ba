# SPDX-License-Identifier: MIT
"""A kernel that needs aligned sizes, on problems without them: it runs padded, says so, and --strict forbids it."""
import json

import pytest

ARCH = ("--arch", "cpu-generic")
GEMM = "gemm:m=100,n=70,k=50,dtype=fp32,layout=rcr"
WHOLE_TILES = "gemm_fp32_any_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1_pad-none@cpu-generic"
NOTE = ("the kernel does not take the problem as it is (rule fit_padding: have m=100 without padding; need a multiple of "
        "the tile's 48), so it is padded: m from 100 to 144, n from 70 to 128, k from 50 to 128; every run copies a, b, c "
        "through ")
CONV = "conv_fwd:n=1,c=6,k=10,in=9x7,filter=3x3,pad=1,dtype=fp32,layout=nhwgc"


@pytest.mark.parametrize("options", ["", ",batch=3,beta=1,epilogue=bias+gelu,d=add", ",scale=row,lda=77,ldc=83"])
def test_a_named_kernel_runs_padded_and_says_so(ask_cached, options):
    answer = ask_cached("run", GEMM + options, *ARCH, "--kernel", WHOLE_TILES, "--validate")
    assert answer["validation"]["ok"] is True and answer["kernel"] == WHOLE_TILES
    notes = answer["plan"]["notes"]
    assert [note["kind"] for note in notes] == ["padding"] and notes[0]["message"].startswith(NOTE)
    assert str(answer["plan"]["workspace_bytes"]) in notes[0]["message"]


def test_people_read_it_too(cached):
    answer = cached("run", GEMM, *ARCH, "--kernel", WHOLE_TILES)
    assert answer.code == 0 and f"tilewise: note: {NOTE}" in answer.err, answer


def test_strict_forbids_it(cached):
    answer = cached("run", GEMM, *ARCH, "--kernel", WHOLE_TILES, "--strict", "--json")
    assert answer.code == 3 and f"strict: padding is not allowed: {NOTE}" in answer.json["error"]["message"], answer
    whole = cached("run", "gemm:m=96,n=128,k=128,dtype=fp32,layout=rcr", *ARCH, "--kernel", WHOLE_TILES, "--strict")
    assert whole.code == 0 and not whole.err, whole


def test_what_padding_cannot_help_is_refused_as_ever(cached):
    answer = cached("run", GEMM.replace("fp32", "bf16"), *ARCH, "--kernel", WHOLE_TILES)
    assert answer.code == 3 and "rule fit_dtype" in answer.err, answer
    answer = cached("run", GEMM + ",workspace=1K", *ARCH, "--kernel", WHOLE_TILES)
    assert answer.code == 3 and "rule fit_workspace" in answer.err and "with copies for padding" in answer.err, answer


def test_bench_shows_the_note(ask_cached, cached):
    row = ask_cached("bench", GEMM, *ARCH, "--kernel", WHOLE_TILES)["results"][0]
    assert row["notes"][0]["kind"] == "padding" and row["notes"][0]["message"].startswith(NOTE)
    assert NOTE in cached("bench", GEMM, *ARCH, "--kernel", WHOLE_TILES).err
    fitting = ask_cached("bench", GEMM, *ARCH, "--rule-set", "tiny", "--strategy", "rules")["results"][0]
    assert not [note for note in fitting["notes"] if note["kind"] != "noise"]  # which a busy machine makes


@pytest.mark.parametrize("direction", ["fwd", "bwd_data", "bwd_weight"])
@pytest.mark.parametrize("changes", [{"vector_a": 4, "vector_b": 2, "vector_c": 4}, {"vector_b": 4, "pad": "none"}])
def test_convolutions_in_every_direction(ask, ask_cached, direction, changes):
    problem = CONV.replace("fwd", direction)
    chosen = ask("select", problem, *ARCH)["plan"]["kernel"]
    listed = ask("kernels", "--op", f"conv_{direction}", "--dtype", "fp32", *ARCH)["kernels"]
    config = next(kernel["config"] for kernel in listed if kernel["name"] == chosen) | {"layout": "nhwgc"} | changes
    answer = ask_cached("run", problem, *ARCH, "--kernel", json.dumps(config), "--validate")
    assert answer["validation"]["ok"] is True
    assert "c from 6 to " in answer["plan"]["notes"][0]["message"]


def test_select_prefers_kernels_that_fit(ask, run):
    """The smallest sets have aligned kernels only: those are taken for an odd problem where there is no other."""
    words = ("select", "gemm:m=100,n=101,k=102,dtype=bf16,layout=rcr", "--arch", "gfx942", "--rule-set")
    tiny = ask(*words, "tiny")
    assert tiny["candidates"] and all(item["padded"] for item in tiny["candidates"])
    assert "padded, since none may as it is" in tiny["plan"]["why"]
    assert [note["kind"] for note in tiny["plan"]["notes"]] == ["padding"]
    shown = run(*words, "tiny").out
    assert f"note:   {tiny['plan']['notes'][0]['message']}" in shown

    full = ask(*words, "full", "--explain")
    assert full["candidates"] and not any(item["padded"] for item in full["candidates"])
    assert full["plan"]["notes"] == []
    assert any(item["rule"] == "fit_vector" for item in full["rejected"])
    assert "Padding costs" in run(*words, "full", "--explain").out
