# SPDX-License-Identifier: MIT
"""Runs the commands that the documentation shows, so that it stays true.

A ```console or ```sh block is run where the line before it is `<!-- tested -->`: each line that begins with "$ " is a
command (a backslash at its end continues it), run from the project's root with this checkout's tools first on PATH.
A ```sh block without "$ " is one script, a ```python block one program. Each must exit with 0.
"""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "<!-- tested -->"
FENCE = re.compile(r"```(\w*)\s*$")


def commands(text):
    """Yields (line number, command) for each command of the marked blocks; a malformed block is a ValueError."""
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
            yield start + 3, "python3 - <<'END_OF_PROGRAM'\n" + "\n".join(block) + "\nEND_OF_PROGRAM"
            continue
        found = list(prompted(block, start + 3))
        if not found and fence[1] == "sh":
            found = [(start + 3, "\n".join(block))]
        if not found:
            raise ValueError(f"line {start + 2}: the block has no command")
        yield from found


def prompted(block, first):
    index = 0
    while index < len(block):
        begin = index
        if block[index].startswith("$ "):
            command = [block[index][2:]]
            while command[-1].endswith("\\") and index + 1 < len(block):
                index += 1
                command.append(block[index])
            yield first + begin, "\n".join(command)
        index += 1


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where the commands keep kernels: what the documentation prunes must not be the user's."""
    return tmp_path_factory.mktemp("cache")


def run(command, cache="/nonexistent"):
    path = os.pathsep.join([os.fspath(ROOT / "build/bin"), os.fspath(ROOT / ".venv/bin"), os.environ["PATH"]])
    return subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, env={**os.environ, "PATH": path, "TILEWISE_CACHE_DIR": os.fspath(cache)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def documented():
    files = [ROOT / "README.md", ROOT / "HACKING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for file in files:
        if file.is_file():
            for line, command in commands(file.read_text(encoding="utf-8")):
                yield pytest.param(command, id=f"{file.relative_to(ROOT)}:{line}")


@pytest.mark.parametrize("command", list(documented()))
def test_documented_command(command, cache):
    result = run(command, cache)
    assert result.returncode == 0, f"$ {command}\nexit {result.returncode}\n{result.stdout}{result.stderr}"


def test_marked_blocks_are_found():
    text = "\n".join(["```console", "$ unmarked", "```", MARK, "```console", "$ one", "output", "$ two \\", "  more",
                      "```", MARK, "```sh", "three", "```", MARK, "```python", "four", "```"])
    *shown, (line, program) = commands(text)
    assert shown == [(6, "one"), (8, "two \\\n  more"), (13, "three")]
    assert line == 17 and program.splitlines()[1:-1] == ["four"]


@pytest.mark.parametrize("text", [
    MARK, f"{MARK}\n\n```sh\nls\n```", f"{MARK}\n```json\n1\n```", f"{MARK}\n```console\nno prompt\n```",
    f"{MARK}\n```sh\n$ no end",
])
def test_malformed_block_is_an_error(text):
    with pytest.raises(ValueError, match="line"):
        list(commands(text))


def test_failure_in_a_pipe_is_seen():
    assert run("false | true").returncode != 0
    assert run("true").returncode == 0
