# SPDX-License-Identifier: MIT
"""AMD GPUs from the command line: GEMM and convolution run emulated, GEMM also through a HIP runtime that is none (tests/device/hip), the
compiler is asked for what it can, and no card is made up."""
import pathlib
import shutil

import pytest

GEMM = "gemm:m=200,n=136,k=104,dtype=bf16,layout=rcr"
SMALL = "gemm:m=64,n=64,k=64,dtype=bf16,layout=rcr"
FAKE = pathlib.Path(__file__).resolve().parents[2] / "build/fake-hip/libamdhip64.so.7"
KERNEL = "gemm_fp32_rcr_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x8_va4_vb4_vc4@gfx942"
HIPRTC = FAKE.parents[1] / "fake-hiprtc/libhiprtc.so.7"
needs_clang = pytest.mark.skipif(not shutil.which("clang++-22"), reason="clang 22 is not installed")


@pytest.fixture
def on_hip(run):
    """on_hip(*words, **variables of the fake) -> Answer of a command on a machine with AMD GPUs."""
    if not FAKE.is_file():
        pytest.fail(f"{FAKE} is missing; build the target fake_hip")

    def call(*words, **variables):
        return run(*words, env={"TILEWISE_HIP": str(FAKE), **variables})

    return call


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


def one_line_of(answer, code, *parts):
    assert answer.code == code and len(answer.err.splitlines()) == 1, answer
    assert all(part in answer.err for part in parts), answer


def test_without_rocm_the_names_tried_are_said(run):
    if shutil.which("rocminfo"):
        pytest.skip("ROCm is installed")
    one_line_of(run("run", SMALL, "--device", "hip:0"), 5, "no device hip:0", "libamdhip64.so.7", "libamdhip64.so.6", "TILEWISE_HIP")


def test_a_runtime_that_is_not_there_is_named(run):
    answer = run("run", SMALL, "--device", "hip:0", env={"TILEWISE_HIP": "/nowhere/libamdhip64.so.7"})
    one_line_of(answer, 5, "/nowhere/libamdhip64.so.7", "TILEWISE_HIP")


def test_a_library_that_is_no_runtime_is_refused(run):
    one_line_of(run("run", SMALL, "--device", "hip:0", env={"TILEWISE_HIP": "libm.so.6"}), 5, "libm.so.6", "hipInit")


def test_rocm_5_is_refused_with_the_reason(on_hip):
    one_line_of(on_hip("run", SMALL, "--device", "hip:0", FAKE_HIP_VERSION="50221153"), 5, "ROCm 5", "version 4", "ROCm 6 or newer")


def test_a_runtime_without_a_gpu(on_hip):
    one_line_of(on_hip("run", SMALL, "--device", "hip:0", FAKE_HIP_ARCHS=""), 5, "no device hip:0", "0 AMD GPUs")


@pytest.mark.parametrize("arch", ["gfx1100", "gfx908"])
def test_no_arch_stands_in_for_another(on_hip, arch):
    answer = on_hip("run", SMALL, "--device", "hip:0", FAKE_HIP_ARCHS=arch)
    one_line_of(answer, 5, f"is {arch}", "gfx90a, gfx942, gfx950")


def test_waves_of_another_size_are_refused(on_hip):
    one_line_of(on_hip("run", SMALL, "--device", "hip:0", FAKE_HIP_WAVE="32"), 5, "32 lanes", "gfx942 have 64")


def test_a_call_that_fails_is_named(on_hip):
    answer = on_hip("run", SMALL, "--device", "hip:0", FAKE_HIP_FAIL="hipDeviceGetAttribute=2")
    one_line_of(answer, 5, "hipDeviceGetAttribute failed: hipErrorOutOfMemory")


def test_doctor_lists_the_runtime_and_its_gpus(on_hip):
    answer = on_hip("doctor", "--json", FAKE_HIP_ARCHS="gfx942,gfx1100")
    checks = [(item["check"], item["found"]) for item in answer.json["checks"]]
    assert answer.code == 0 and ("hip driver", f"HIP 7.0 ({FAKE})") in checks, answer
    assert [found for check, found in checks if check == "hip GPUs"] == [
        "hip:0: AMD Instinct, faked, gfx942", "hip:1: AMD Instinct, faked, gfx1100"]
    none = on_hip("doctor", "--json", FAKE_HIP_ARCHS="")
    found = next(item for item in none.json["checks"] if item["check"] == "hip GPUs")
    assert none.code == 0 and found["level"] == "warn" and "none" in found["found"]
    missing = on_hip("doctor", "--json", TILEWISE_HIP="/nowhere/libamdhip64.so.7")
    found = next(item for item in missing.json["checks"] if item["check"] == "hip GPUs")
    assert missing.code == 0 and found["level"] == "warn" and "/nowhere" in found["found"]


@needs_clang
@pytest.mark.parametrize("variables, kind", [({}, "clang++ 22"), ({"TILEWISE_HIPRTC": str(HIPRTC)}, "hiprtc 7")])
def test_doctor_tries_the_compiler(ask, variables, kind):
    found = next(item for item in ask("doctor", env=variables)["checks"] if item["check"] == "clang for AMD GPUs")
    assert found["level"] == "ok" and found["found"].startswith(kind) and "compiles for gfx950" in found["found"], found


@needs_clang
def test_a_product_runs_on_a_device(on_hip):
    """The whole way: an object is built, checked, loaded, launched and judged. The runtime has the kernel emulated."""
    answer = on_hip("run", "gemm:m=70,n=68,k=36,dtype=fp32,layout=rcr", "--device", "hip:0", "--validate", "--json", "--kernel", KERNEL,
                    TILEWISE_CACHE_DIR=str(FAKE.parents[1] / "emulated-cache"))
    assert answer.code == 0 and answer.json["validation"]["ok"], answer


def test_a_compiler_that_is_too_old_is_named(on_hip, tmp_path):
    old = tmp_path / "clang++"
    old.write_text('#!/bin/sh\ncase "$*" in *-dM*) echo "#define __clang_major__ 14";; esac\n')
    old.chmod(0o755)
    answer = on_hip("run", SMALL, "--device", "hip:0", TILEWISE_AMDCLANG=str(old), TILEWISE_CACHE_DIR=str(tmp_path / "cache"))
    assert answer.code == 4 and "14.0.0" in answer.err and "clang 19 or newer" in answer.err, answer


def test_every_candidate_has_a_predicted_time(ask):
    answer = ask("select", "gemm:m=4096,n=4096,k=4096,dtype=bf16,layout=rcr", "--arch", "gfx942", "--explain")
    assert answer["candidates"] and all(item["predicted_us"] > 0 for item in answer["candidates"])


def test_without_a_compiler_the_way_out_is_said(run, tmp_path):
    answer = run("build", "--arch", "gfx942", "--rule-set", "tiny", "--op", "gemm", "--dtype", "fp32", "--pack", tmp_path / "p.pack",
                 env={"TILEWISE_AMDCLANG": "/nowhere/clang++", "TILEWISE_CACHE_DIR": str(tmp_path / "cache")})
    assert answer.code == 4 and "/nowhere/clang++" in answer.err and "clang 19 or newer" in answer.err, answer


@needs_clang
def test_a_pack_is_built(run, ask, tmp_path):
    pack = tmp_path / "p.pack"
    answer = ask("build", "--arch", "gfx942", "--rule-set", "tiny", "--op", "gemm", "--dtype", "fp32", "--pack", pack)
    assert pack.stat().st_size > 0 and answer["resources"], answer
