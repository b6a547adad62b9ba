# SPDX-License-Identifier: MIT
"""Kernels built into the command: all works on a machine without a compiler."""
import pytest

DTYPES = ["fp32", "fp16", "bf16", "fp8", "bf8", "int8"]
NEEDS = {"cpu-avx512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "fma", "f16c"},
         "cpu-avx2": {"avx2", "fma", "f16c"}, "cpu-generic": set()}
SHAPES = ["m=1,n=130,k=70", "m=50,n=1,k=33", "m=33,n=65,k=17,layout=ccc", "m=70,n=200,k=900,packed_b=1"]


@pytest.fixture
def bare(tmp_path):
    """The environment of a machine without a compiler and without built kernels."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin"), "TILEWISE_CACHE_DIR": str(tmp_path / "cache")}


def skip_without(arch, dtype, machine):
    have = set(machine["CPU features"].split())
    if not NEEDS[arch] <= have:
        pytest.skip(f"this CPU is no {arch}")
    if arch == "cpu-avx512" and dtype == "int8" and "avx512_vnni" not in have:
        pytest.skip("int8 on AVX-512 needs VNNI")


@pytest.mark.parametrize("arch", NEEDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_on_every_cpu(ask, bare, machine, arch, dtype):
    skip_without(arch, dtype, machine)
    for shape in SHAPES:
        answer = ask("run", f"gemm:{shape},dtype={dtype}", "--arch", arch, "--validate", env=bare)
        assert answer["validation"]["ok"], answer
        assert answer["plan"]["origin"] in ("builtin", "cache"), answer  # the cache keeps what was used before


def test_the_plan_says_so(ask, bare):
    problem = "gemm:m=700,n=300,k=200,dtype=fp32"
    first, again = (ask("run", problem, env=bare) for _ in range(2))
    assert first["plan"]["origin"] == "builtin" and again["plan"]["origin"] == "cache"
    assert first["kernel"] == again["kernel"]


def test_measuring_stays_with_what_can_be_had(ask, bare):
    answer = ask("run", "gemm:m=64,n=64,k=64,dtype=fp32", "--strategy", "measure", "--validate", env=bare)
    assert answer["validation"]["ok"] and answer["plan"]["source"] == "measured"
    assert "fastest of" in answer["plan"]["why"]
    kinds = {note["kind"] for note in answer["plan"]["notes"]}
    assert "compiler" in kinds <= {"compiler", "noise"}, "fewer were measured than could be"


def test_strict_does_not_settle_for_what_can_be_had(run, bare):
    answer = run("run", "gemm:m=64,n=64,k=64,dtype=fp32", "--strategy", "measure", "--strict", env=bare)
    assert answer.code == 4 and "TILEWISE_CXX" in answer.err, answer


def test_without_a_cache_it_is_loaded_from_memory(ask, bare, tmp_path):
    (tmp_path / "file").write_text("no folder")
    answer = ask("run", "gemm:m=64,n=64,k=64,dtype=fp32", "--validate",
                 env={**bare, "TILEWISE_CACHE_DIR": str(tmp_path / "file")})
    assert answer["validation"]["ok"] and answer["plan"]["origin"] == "builtin"
    assert any("from memory" in note["message"] for note in answer["plan"]["notes"])


def test_what_cannot_be_had_is_said(run, bare):
    answer = run("run", "gemm:m=64,n=64,k=64,dtype=bf16,out=fp32", env=bare)
    assert answer.code == 4
    assert "TILEWISE_CXX" in answer.err and "built in" in answer.err


def test_doctor_counts_them(ask, machine, tmp_path):
    for arch in NEEDS:
        answer = ask("build", "--arch", arch, "--rule-set", "builtin", env={"TILEWISE_CACHE_DIR": str(tmp_path)})
        assert answer["compiled"] == 0 and f"{answer['binaries']} for {arch}" in machine["built-in kernels"]


def test_several_archs_in_one_pack(ask, machine, tmp_path):
    pack = tmp_path / "two.pack"
    answer = ask("build", "--arch", "cpu-avx2,cpu-generic", "--rule-set", "builtin", "--dtype", "fp8_bf8", "--op", "gemm",
                 "--pack", str(pack), env={"TILEWISE_CACHE_DIR": str(tmp_path / "cache")})
    assert answer["failed"] == 0 and answer["kernels"] == answer["binaries"] > 0
    features = set(machine["CPU features"].split())
    for arch in ("cpu-avx2", "cpu-generic"):
        if NEEDS[arch] <= features:  # packs are looked in before the built-in kernels
            served = ask("run", "gemm:m=8,n=8,k=8,dtype=fp8,b=bf8", "--arch", arch, "--rule-set", "builtin", "--pack", str(pack),
                         env={"TILEWISE_CACHE_DIR": str(tmp_path / arch)})
            assert served["plan"]["origin"] == "pack"
    assert answer["compiled"] == 0, "the built-in ones are used as they are"
