# SPDX-License-Identifier: MIT
"""The first things that newcomers try, and the answers: each message names the value and the way out."""
import json
import subprocess

import pytest

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
CONV = "conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,dtype=bf16"


@pytest.mark.parametrize("words, code, told", [
    (["run", GEMM, "--kernel", "nope"], 2, ["'nope'", "ends in @arch", "tilewise kernels"]),
    (["check", "0123456789abcdef"], 2, ["no kernel", "0123456789abcdef"]),
    (["check", "nowhere/config.json"], 2, ["nowhere/config.json"]),
    (["run", GEMM, "--arch", "sm_90a"], 3, ["no CPU", "cuda:0", "emulated:sm_90a"]),
    (["select", GEMM, "--arch", "sm_100"], 2, ["sm_100", "--arch-file", "older"]),
    (["select", GEMM, "--arch", "sm_90"], 2, ["did you mean 'sm_90a'?"]),
    (["select", f"{CONV},layout=nchw"], 2, ["nchw", "ngchw", "tilewise.torch"]),
    (["select", f"{CONV},layout=nhwc"], 2, ["nhwc", "nhwgc"]),
    (["help", "benhc"], 2, ["did you mean 'bench'?"]),
    (["bench", "--problems", "/dev/null"], 2, ["no problem in '/dev/null'"]),
    (["bench", "--problems", "-"], 2, ["no problem in '-'"]),
    (["build", "--jobs", "0"], 2, ["from 1 to 1024", "not '0'"]),
])
def test_messages(run, words, code, told):
    answer = run(*words)
    assert answer.code == code and all(word in answer.err for word in told), answer


@pytest.mark.parametrize("word, dtype", [("float32", "fp32"), ("float16", "fp16"), ("half", "fp16"), ("torch.bfloat16", "bf16"),
                                         ("float8_e4m3fn", "fp8"), ("torch.float8_e5m2", "bf8"), ("torch.int8", "int8")])
def test_other_words_for_element_types(ask, run, word, dtype):
    assert f"dtype={dtype}," in run("select", f"gemm:m=8,n=8,k=8,dtype={word}", "--arch", "sm_90a").out
    counts = {ask("kernels", "--arch", "sm_90a", "--op", "gemm", "--dtype", one, "--rule-set", "tiny")["count"]
              for one in (word, dtype)}
    assert len(counts) == 1 and counts != {0}


def test_there_may_be_no_cache(binary):
    done = subprocess.run([binary, "cache", "stats"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("tilewise: there is no cache: none of TILEWISE_CACHE_DIR, "), done


def test_help_is_a_command(run):
    assert run("help").out == run("--help").out
    assert run("help", "bench").out == run("bench", "--help").out


def test_a_kernel_by_its_id(ask, ask_cached):
    kernel = ask("kernels", "--arch", "cpu-generic", "--op", "gemm", "--dtype", "fp32", "--rule-set", "tiny")["kernels"][0]
    answer = ask_cached("run", GEMM, "--arch", "cpu-generic", "--kernel", kernel["id"])
    assert answer["kernel"] == kernel["name"] and answer["plan"]["source"] == "named"
    assert ask("check", kernel["id"])["name"] == kernel["name"]


def test_a_compiler_that_is_none(run, ask, tmp_path):
    """The kernel that was asked for cannot be built; of others, those that are built in are taken, and the note says why."""
    env = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_CXX": "/bin/false"}
    kernels = ask("kernels", "--op", "gemm", "--dtype", "fp32", "--rule-set", "full")["kernels"]
    built_in = {kernel["name"] for kernel in ask("kernels", "--op", "gemm", "--dtype", "fp32", "--rule-set", "builtin")["kernels"]}
    wanted = next(kernel["name"] for kernel in kernels if kernel["name"] not in built_in)
    answer = run("run", GEMM, "--kernel", wanted, env=env)
    assert answer.code == 4 and "TILEWISE_CXX names no compiler" in answer.err and "/bin/false" in answer.err, answer
    notes = ask("run", "gemm:m=700,n=300,k=200,dtype=fp32", "--rule-set", "full", env=env)["plan"]["notes"]
    assert all("/bin/false" in note["message"] for note in notes if note["kind"] == "compiler")


@pytest.mark.parametrize("problem, checked", [
    ("gemm:m=0,n=8,k=8,dtype=fp32", 0), ("gemm:m=8,n=0,k=8,dtype=bf16", 0), ("gemm:m=8,n=8,k=8,batch=0,dtype=fp32", 0),
    ("conv_fwd:n=0,c=4,k=4,in=8x8,filter=3x3,dtype=fp32", 0), ("gemm:m=5,n=6,k=0,dtype=fp32,epilogue=bias+relu,beta=1", 30),
    ("gemm:m=5,n=6,k=0,batch=2,dtype=int8,layout=crc", 60), ("gemm:m=4,n=4,k=0,dtype=fp32,d=add+mul,scale=row", 16),
    ("conv_bwd_weight:n=0,c=4,k=4,in=8x8,filter=3x3,dtype=fp32,beta=1", 144),
])
def test_empty_dimensions(ask_cached, problem, checked):
    answer = ask_cached("run", problem, "--validate")
    assert answer["validation"]["ok"] and answer["validation"]["checked"] == checked
    assert (answer["plan"]["origin"] == "none") == (checked == 0)
    assert "empty" in answer["plan"]["why"] or "zeros" in answer["plan"]["why"]


def test_there_is_nothing_to_time(run):
    for command in ("bench", "tune"):
        answer = run(command, "gemm:m=0,n=8,k=8,dtype=fp32")
        assert answer.code == 3 and "empty dimension" in answer.err, answer


def test_sums_without_terms_on_an_emulated_gpu(ask_cached):
    answer = ask_cached("run", "gemm:m=8,n=16,k=0,dtype=bf16,beta=1,epilogue=bias", "--device", "emulated:sm_90a", "--validate")
    assert answer["validation"]["ok"] and answer["validation"]["checked"] == 128
