# SPDX-License-Identifier: MIT
"""AMD GPUs from the command line: GEMM runs emulated, the compiler is asked for what it can, and no card is made up."""
import shutil

import pytest

GEMM = "gemm:m=200,n=136,k=104,dtype=bf16,layout=rcr"


def test_a_product_runs_emulated(ask):
    answer = ask("run", GEMM, "--device", "emulated:gfx942", "--validate")
    assert answer["validation"]["ok"] and answer["kernel"].endswith("@gfx942"), answer


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
