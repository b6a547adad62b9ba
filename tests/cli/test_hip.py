# SPDX-License-Identifier: MIT
"""AMD GPUs from the command line: GEMM and convolution run emulated, the compiler is asked for what it can, and no card is made up."""
import shutil

import pytest

GEMM = "gemm:m=200,n=136,k=104,dtype=bf16,layout=rcr"


def test_a_product_runs_emulated(ask):
    answer = ask("run", GEMM, "--device", "emulated:gfx942", "--validate")
    assert answer["validation"]["ok"] and answer["kernel"].endswith("@gfx942"), answer


@pytest.mark.parametrize("arch, problem", [
    ("gfx90a", "conv_fwd:n=2,g=1,c=21,k=37,in=9x8,filter=3x3,stride=2x1,pad=1x1,dtype=fp16,epilogue=bias+relu"),
    ("gfx942", "conv_bwd_data:n=1,g=2,c=32,k=48,in=6x7x5,filter=1x3x2,dilation=1x2x1,dtype=bf16,beta=1"),
    ("gfx950", "conv_bwd_weight:n=2,g=4,c=32,k=32,in=9x9,filter=3x3,pad=1x1,dtype=bf16"),
])
def test_a_convolution_runs_emulated(ask, arch, problem):
    answer = ask("run", problem, "--device", "emulated:" + arch, "--validate")
    assert answer["validation"]["ok"] and answer["kernel"].endswith("@" + arch), answer


def test_there_is_no_card(run):
    answer = run("run", "gemm:m=64,n=64,k=64,dtype=bf16", "--device", "hip:0")
    assert answer.code == 5 and len(answer.err.splitlines()) == 1 and "emulated:gfx942" in answer.err, answer


def test_every_candidate_has_a_predicted_time(ask):
    answer = ask("select", "gemm:m=4096,n=4096,k=4096,dtype=bf16,layout=rcr", "--arch", "gfx942", "--explain")
    assert answer["candidates"] and all(item["predicted_us"] > 0 for item in answer["candidates"])


def test_without_a_compiler_the_way_out_is_said(run, tmp_path):
    answer = run("build", "--arch", "gfx942", "--rule-set", "tiny", "--op", "gemm", "--dtype", "fp32", "--pack", tmp_path / "p.pack",
                 env={"TILEWISE_AMDCLANG": "/nowhere/clang++", "TILEWISE_CACHE_DIR": str(tmp_path / "cache")})
    assert answer.code == 4 and "/nowhere/clang++" in answer.err and "clang 19 or newer" in answer.err, answer


@pytest.mark.skipif(not shutil.which("clang++-22"), reason="clang 22 is not installed")
def test_a_pack_is_built(run, ask, tmp_path):
    pack = tmp_path / "p.pack"
    answer = ask("build", "--arch", "gfx942", "--rule-set", "tiny", "--op", "gemm", "--dtype", "fp32", "--pack", pack)
    assert pack.stat().st_size > 0 and answer["resources"], answer
