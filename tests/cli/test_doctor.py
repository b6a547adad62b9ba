# SPDX-License-Identifier: MIT
"""tilewise doctor: what this machine and this build have, as text and as JSON."""
import re


def test_all_is_well(run, ask, root):
    answer = ask("doctor")
    assert answer["ok"] is True
    checks = {item["check"]: item for item in answer["checks"]}
    assert all(item["ok"] and set(item) >= {"check", "found", "ok"} for item in answer["checks"])
    assert {path.stem for path in (root / "arch").glob("*.json")} <= set(checks)
    assert checks["host CPU"]["found"].startswith("cpu-")
    assert checks["version"]["found"] in run("--version").out
    text = run("doctor")
    assert text.code == 0 and all(name in text.out for name in checks)


def test_environment_variables_are_listed_with_their_values(run, new_arch):
    path = str(new_arch())
    out = run("doctor", env={"TILEWISE_ARCH_FILE": path}).out
    line = next(line for line in out.splitlines() if "TILEWISE_ARCH_FILE" in line)
    assert path in line
    assert "not set" in next(line for line in run("doctor").out.splitlines() if "TILEWISE_ARCH_FILE" in line)


def test_every_variable_that_is_read_is_listed(run, root):
    sources = (path.read_text() for path in (root / "src").rglob("*.cpp"))
    read = {name for text in sources for name in re.findall('"(TILEWISE_[A-Z_]*[A-Z])"', text)}
    out = run("doctor").out
    assert read and {name for name in read if name not in out} == set()


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
