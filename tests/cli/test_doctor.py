# SPDX-License-Identifier: MIT
"""tilewise doctor: what this machine and this build have, as text and as JSON."""
import re
import subprocess

import pytest


def checks_of(answer):
    """name: what was found under it; the last where there are several."""
    return {item["check"]: item for item in answer.json["checks"]}


def test_all_is_well(run, ask, root):
    answer = ask("doctor")
    assert answer["ok"] is True
    checks = {item["check"]: item for item in answer["checks"]}
    assert all(item["ok"] and set(item) >= {"check", "found", "ok"} for item in answer["checks"])
    assert {path.stem for path in (root / "arch").glob("*.json")} <= set(checks)
    assert checks["host CPU"]["found"].startswith("cpu-")
    assert checks["version"]["found"] in run("--version").out
    assert "compiles for cpu-" in checks["compiler"]["found"]
    assert {"cuda GPUs", "hip GPUs"} & set(checks) and {"packs", "model", "tuning results"} <= set(checks)
    text = run("doctor")
    assert text.code == 0 and all(name in text.out for name in checks)


def test_models_are_listed_and_those_that_cannot_be_used(ask, run, tmp_path):
    found = [item["found"] for item in ask("doctor")["checks"] if item["check"] == "model"]
    assert "models/gemm_universal_bf16_sm_90a: gemm in bf16, fp16 on sm_90a" in found
    (tmp_path / "model.json").write_text("{")
    answer = ask("doctor", env={"TILEWISE_MODEL_DIR": str(tmp_path)})
    broken, = (item for item in answer["checks"] if item["check"] == "model" and str(tmp_path) in item["found"])
    assert broken["level"] == "warn" and "is not used: " in broken["found"]
    named = run("doctor", "--model-dir", str(tmp_path / "nothing"))
    assert named.code == 1 and "has no model" in named.out


def test_environment_variables_are_listed_with_their_values(run, new_arch):
    path = str(new_arch())
    out = run("doctor", env={"TILEWISE_ARCH_FILE": path}).out
    line = next(line for line in out.splitlines() if "TILEWISE_ARCH_FILE" in line)
    assert path in line
    assert "not set" not in out
    unset = run("doctor", "--all").out
    assert "not set" in next(line for line in unset.splitlines() if "TILEWISE_ARCH_FILE" in line)


def test_every_variable_that_is_read_is_listed(run, root):
    sources = (path.read_text() for path in (root / "src").rglob("*.cpp"))
    read = {name for text in sources for name in re.findall('"(TILEWISE_[A-Z_]*[A-Z])"', text)}
    out = run("doctor", "--all").out
    assert read and {name for name in read if name not in out} == set()


@pytest.mark.parametrize("name, value", [("TILEWISE_THREADS", "x"), ("TILEWISE_THREADS", "0"), ("TILEWISE_PLAN_CACHE", "1")])
def test_a_variable_that_a_run_refuses_fails(run, name, value):
    answer = run("doctor", "--json", env={name: value})
    found = checks_of(answer)[name]
    assert answer.code == 1 and found["level"] == "FAIL" and found["found"].startswith(f"{name} is '{value}'; need ")


def test_variables_that_nothing_reads_are_named(run):
    answer = run("doctor", "--json", env={"TILEWISE_CACHEDIR": "/x", "TILEWISE_ZZZZZZZZZZZZ": "1", "TILEWISE_TEST_X": "1"})
    checks = checks_of(answer)
    assert answer.code == 0 and "TILEWISE_TEST_X" not in checks
    assert checks["TILEWISE_CACHEDIR"]["level"] == "warn" and "did you mean TILEWISE_CACHE_DIR?" in checks["TILEWISE_CACHEDIR"]["found"]
    assert "doctor --all" in checks["TILEWISE_ZZZZZZZZZZZZ"]["found"]


def test_a_model_folder_that_is_not_there_is_a_warning(run, tmp_path):
    answer = run("doctor", "--json", env={"TILEWISE_MODEL_DIR": str(tmp_path / "nothing")})
    assert answer.code == 0
    assert [item["level"] for item in answer.json["checks"] if f"'{tmp_path}/nothing' has no model" in item["found"]] == ["warn"]


def test_columns_stand_straight(run):
    """A version is a word, not a number to be set to the right."""
    lines = run("doctor").out.splitlines()
    starts = {line.index(cell) for line, cell in ((lines[0], "found"), (lines[1], "0."), (lines[2], "cpu-"))}
    assert len(starts) == 1, "\n".join(lines[:3])


def test_nvrtc_is_found_or_what_was_looked_for_is_said(ask):
    """Without it what is cached or packed still runs, so a missing one is news, not a fault."""
    checks = {item["check"]: item for item in ask("doctor")["checks"]}
    assert checks["NVRTC"]["found"].startswith(("nvrtc 1", "no NVRTC"))
    nowhere = "/nonexistent/libnvrtc.so.13"
    checks = {item["check"]: item for item in ask("doctor", env={"TILEWISE_NVRTC": nowhere})["checks"]}
    assert nowhere in checks["NVRTC"]["found"] and checks["NVRTC"]["ok"]


@pytest.mark.parametrize("cache", ["/proc/none", "/dev/null/tilewise"])
def test_a_cache_that_cannot_be_written_fails(run, cache):
    answer = run("doctor", "--json", env={"TILEWISE_CACHE_DIR": cache})
    found = checks_of(answer)["cache"]
    assert answer.code == 1 and answer.json["ok"] is False and found["level"] == "FAIL" and not found["ok"]
    assert cache in found["found"] and "TILEWISE_CACHE_DIR" in found["found"]


def test_a_cache_without_a_place_fails(binary):
    done = subprocess.run([binary, "doctor"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    line = next(line for line in done.stdout.splitlines() if " cache " in line)
    assert done.returncode == 1 and line.startswith("FAIL") and "HOME" in line


@pytest.mark.parametrize("env, told", [({"PATH": "/nonexistent"}, "apt install g++"),
                                       ({"TILEWISE_CXX": "/bin/false"}, "neither g++ nor clang++")])
def test_without_a_compiler_is_a_warning(run, tmp_path, env, told):
    answer = run("doctor", "--json", env={"TILEWISE_CACHE_DIR": str(tmp_path), **env})
    found = checks_of(answer)["compiler"]
    assert answer.code == 0 and answer.json["ok"] and found["level"] == "warn" and told in found["found"]


def test_a_compiler_that_fails_is_a_warning(run, tmp_path):
    """It says what it is, but compiles nothing."""
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-dM*) exec c++ "$@";; *) echo broken >&2; exit 3;; esac\n')
    compiler.chmod(0o755)
    answer = run("doctor", "--json", env={"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_CXX": str(compiler)})
    found = checks_of(answer)["compiler"]
    assert answer.code == 0 and found["level"] == "warn"
    assert "does not compile" in found["found"] and "broken" in found["found"]
    assert "broken" not in run("doctor", env={"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_CXX": str(compiler)}).out


def test_a_missing_gpu_is_a_warning(run, tmp_path):
    answer = run("doctor", "--json", env={"TILEWISE_CACHE_DIR": str(tmp_path)})
    levels = {item["level"] for item in answer.json["checks"] if item["check"].endswith(" GPUs")}
    assert answer.code == 0 and levels <= {"ok", "warn"}


def test_packs_are_listed_and_a_bad_one_fails(run, tmp_path):
    pack = tmp_path / "bad.pack"
    pack.write_text("no pack")
    pack.chmod(0o600)
    env = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_PACKS": str(pack)}
    answer = run("doctor", "--json", env=env)
    assert answer.code == 1 and str(pack) in checks_of(answer)["pack"]["found"]


def test_the_table_fits_the_terminal(binary, run_on_a_terminal, tmp_path):
    env = {"PATH": "/usr/bin:/bin", "TILEWISE_CACHE_DIR": str(tmp_path), "TERM": "dumb"}
    code, _, shown = run_on_a_terminal([binary, "doctor", "--all"], env, "stdout")
    lines = shown.replace("\r", "").splitlines()
    assert code == 0 and max(map(len, lines)) <= 80 and "\033" not in shown
    assert any(line.startswith(" " * 20) for line in lines)  # what did not fit goes on below
