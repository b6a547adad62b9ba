# SPDX-License-Identifier: MIT
"""Runs the commands that the documentation shows, so that it stays true.

A ```console or ```sh block is run where the line before it is `<!-- tested -->`: each line that begins with "$ " is a
command (a backslash at its end continues it), run from the project's root with this checkout's tools first on PATH.
A ```sh block without "$ " is one script, a ```python block one program. Each must exit with 0. Lines of a ```console block that follow a
command are output that it must print, in this order; numbers, names of kernels for this CPU and where a kernel came from may differ, and a
line `…` stands for any lines.
"""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MARK = "<!-- tested -->"
FENCE = re.compile(r"```(\w*)\s*$")


def commands(text):
    """Yields (line number, command, expected lines) for each command of the marked blocks; a malformed block is a ValueError."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if line.strip() != MARK:
            continue
        fence = FENCE.match(lines[start + 1]) if start + 1 < len(lines) else None
        if not fence or fence[1] not in ("console", "sh", "python"):
            raise ValueError(f"line {start + 1}: {MARK} stands before no console, sh or python block")
        try:
            end = lines.index("```", start + 2)
        except ValueError:
            raise ValueError(f"line {start + 2}: the block has no end") from None
        block = lines[start + 2:end]
        if fence[1] == "python":
            yield start + 3, "python3 - <<'END_OF_PROGRAM'\n" + "\n".join(block) + "\nEND_OF_PROGRAM", []
            continue
        found = list(prompted(block, start + 3))
        if not found and fence[1] == "sh":
            found = [(start + 3, "\n".join(block), [])]
        if not found:
            raise ValueError(f"line {start + 2}: the block has no command")
        yield from found


def prompted(block, first):
    index = 0
    while index < len(block):
        begin = index
        index += 1
        if not block[begin].startswith("$ "):
            continue
        command, output = [block[begin][2:]], []
        while command[-1].endswith("\\") and index < len(block):
            command.append(block[index])
            index += 1
        while index < len(block) and not block[index].startswith("$ "):
            output.append(block[index])
            index += 1
        yield first + begin, "\n".join(command), output


def masked(line):
    """A line without what differs from machine to machine and from run to run."""
    line = re.sub(r"\S+@cpu-\S+", "KERNEL", line)
    line = re.sub(r"\((cache|pack|builtin|built|private)\)", "(ORIGIN)", line)
    line = re.sub(r"\bthreads\b", "thread", line)
    line = re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "N", line)
    return re.sub(r"\s+", " ", line).strip()


def missing(expected, printed):
    """The first expected line that was not printed in its place; None where all were."""
    lines, place, anywhere = [masked(line) for line in printed.splitlines()], 0, False
    for line in expected:
        if line.strip() == "…":
            anywhere = True
            continue
        wanted = masked(line)
        found = lines.index(wanted, place) if wanted in lines[place:] else None
        if found is None or (found != place and not anywhere):
            return line
        place, anywhere = found + 1, False
    return None


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where the commands keep kernels: what the documentation prunes must not be the user's."""
    return tmp_path_factory.mktemp("cache")


def run(command, cache="/nonexistent"):
    path = os.pathsep.join([os.fspath(ROOT / "build/bin"), os.fspath(ROOT / ".venv/bin"), os.environ["PATH"]])
    return subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, env={**os.environ, "PATH": path, "TILEWISE_CACHE_DIR": os.fspath(cache)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def documented():
    for file in PAGES:
        for line, command, output in commands(file.read_text(encoding="utf-8")):
            yield pytest.param(command, output, id=f"{file.relative_to(ROOT)}:{line}")


@pytest.mark.parametrize("command, output", list(documented()))
def test_documented_command(command, output, cache):
    result = run(command, cache)
    told = f"$ {command}\nexit {result.returncode}\n{result.stdout}{result.stderr}"
    # A check that finds something ends with 1, and the page shows what it finds.
    assert result.returncode == 0 or (output and result.returncode == 1), told
    line = missing(output, result.stdout)
    assert line is None, f"{told}\nnot printed: {line!r}"


def test_marked_blocks_are_found():
    text = "\n".join(["```console", "$ unmarked", "```", MARK, "```console", "$ one", "output", "$ two \\", "  more",
                      "```", MARK, "```sh", "three", "```", MARK, "```python", "four", "```"])
    *shown, (line, program, _) = commands(text)
    assert shown == [(6, "one", ["output"]), (8, "two \\\n  more", []), (13, "three", [])]
    assert line == 17 and program.splitlines()[1:-1] == ["four"]


@pytest.mark.parametrize("text", [
    MARK, f"{MARK}\n\n```sh\nls\n```", f"{MARK}\n```json\n1\n```", f"{MARK}\n```console\nno prompt\n```",
    f"{MARK}\n```sh\n$ no end",
])
def test_malformed_block_is_an_error(text):
    with pytest.raises(ValueError, match="line"):
        list(commands(text))


def test_output_is_compared_but_for_numbers():
    printed = "kernel: gemm_a@cpu-avx2 (built)\nplan:   12.5 us\nvalid\nend\n"
    assert missing(["kernel: gemm_b@cpu-amx (cache)", "plan: 3 us", "…", "end"], printed) is None
    assert missing(["plan: 3 us"], printed) == "plan: 3 us"
    assert missing(["kernel: x@cpu-y (cache)", "plan: 3 ms"], printed) == "plan: 3 ms"
    assert missing(["…", "valid", "valid"], printed) == "valid"


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_no_line_begins_with_a_backslash(page):
    """The shell takes a backslash and a space for the start of a command's name; a line goes on with one at its end."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [f"line {number}: {line}" for number, line in enumerate(lines, 1) if re.match(r"\s*\\(\s|$)", line)] == []


def test_failure_in_a_pipe_is_seen():
    assert run("false | true").returncode != 0
    assert run("true").returncode == 0
