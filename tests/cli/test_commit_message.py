# SPDX-License-Identifier: MIT
"""tools/commit_message: what it refuses, as a hook of a checkout, and what it lists."""
import pathlib
import subprocess

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "commit_message"


@pytest.fixture
def checkout(tmp_path):
    def git(*words, **options):
        return subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.invalid", *words], cwd=tmp_path,
                              capture_output=True, text=True, check=False, **options)

    git("init", "-q")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "commit_message").symlink_to(TOOL)
    subprocess.run([TOOL, "--install"], cwd=tmp_path, check=True)

    def commit(message, lines=1):
        (tmp_path / "file").write_text("".join(f"{message} {i}\n" for i in range(lines)))
        git("add", "file")
        return git("commit", "-q", "-F", "-", input=message)

    commit.folder = tmp_path
    return commit


@pytest.mark.parametrize("message, lines, told", [
    ("Say what a plan costs", 1, None),
    ("Say what a plan costs\n\nNobody could see it.", 100, None),
    ("x" * 72, 1, None),
    ("Merge branch 'x' " + "y" * 80, 100, None),
    ("x" * 73, 1, "73 characters; need at most 72"),
    ("Say what a plan costs.", 1, "full stop"),
    ("Say what a plan costs\nNobody could see it.", 1, "not empty"),
    ("Say what a plan costs", 100, "needs a body that says why"),
])
def test_the_hook(checkout, message, lines, told):
    done = checkout(message, lines)
    assert done.returncode == (0 if told is None else 1), done.stderr
    assert told is None or told in done.stderr


def test_a_hook_that_is_there_stays(checkout):
    hook = checkout.folder / ".git" / "hooks" / "commit-msg"
    hook.write_text("#!/bin/sh\nexit 0\n")
    subprocess.run([TOOL, "--install"], cwd=checkout.folder, check=True)
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"


def test_offenders_are_listed_and_nothing_fails(checkout):
    (checkout.folder / ".git" / "hooks" / "commit-msg").unlink()
    checkout("Good")
    checkout("Bad.")
    done = subprocess.run([TOOL, "--list", "2"], cwd=checkout.folder, capture_output=True, text=True, check=True)
    assert "Bad.\n" in done.stdout and "Good\n" not in done.stdout and "1 of the last 2" in done.stdout
