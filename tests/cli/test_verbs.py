# SPDX-License-Identifier: MIT
"""Commands that are programs of their own: where they are looked for, and what they are given."""
import os
import shutil
import subprocess
import sys

import pytest

VERBS = ["cluster", "convert", "crawl", "predict", "report", "train", "validate"]


@pytest.fixture
def put_command(run, binary, tmp_path):
    """put_command("a/bin") -> call(*words), which runs the command from that folder, call.folder."""

    def put(name):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        try:
            os.link(binary, folder / "tilewise")
        except OSError:  # another file system
            shutil.copy(binary, folder / "tilewise")

        def call(*words, path="/nonexistent", **options):
            return run(*words, env={"PATH": os.fspath(path)}, executable=folder / "tilewise", **options)

        call.folder = folder
        return call

    return put


@pytest.fixture
def alone(put_command):
    """The command where it belongs to no package."""
    return put_command("a/bin")


def put_verb(folder, name, says):
    """A program that prints what it is and its words."""
    folder.mkdir(exist_ok=True)
    program = folder / f"tilewise-{name}"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint({says!r}, sys.argv[1:])\nsys.exit(7)\n")
    program.chmod(0o755)


def test_beside_the_command_comes_first(alone, tmp_path):
    put_verb(tmp_path / "path", "crawl", "on PATH")
    answer = alone("crawl", "x", path=tmp_path / "path")
    assert answer.code == 7 and answer.out == "on PATH ['x']\n", answer
    put_verb(alone.folder, "crawl", "beside")
    answer = alone("crawl", "--input", "8x3", "--", "y", path=tmp_path / "path")
    assert answer.code == 7 and answer.out == "beside ['--input', '8x3', '--', 'y']\n", answer


def test_options_before_the_verb_are_its_own(alone):
    put_verb(alone.folder, "crawl", "beside")
    assert alone("--json", "crawl", "x").out == "beside ['--json', 'x']\n"


def test_the_package_of_the_command_comes_before_path(put_command, tmp_path):
    """As pip installs it: the command in a folder of the package."""
    put_verb(tmp_path / "path", "crawl", "on PATH")
    (tmp_path / "path" / "python3").symlink_to(sys.executable)
    installed = put_command("tilewise/bin")
    (tmp_path / "tilewise" / "__init__.py").touch()
    (tmp_path / "tilewise" / "_verbs.py").write_text("def main(words):\n    print('package', words)\n    return 6\n")
    answer = installed("crawl", "x", path=tmp_path / "path")
    assert answer.code == 6 and answer.out == "package ['crawl', 'x']\n", answer


def test_the_folder_that_the_user_is_in_gives_no_code(alone, binary, tmp_path):
    """Neither by a relative PATH, nor as a place for Python's modules."""
    here = tmp_path / "here"
    put_verb(here, "crawl", "here")
    for name in ("argparse", "json", "onnx", "tilewise"):
        (here / f"{name}.py").write_text("print('here')\n")
    for program, path, code in ((alone.folder / "tilewise", ".:here:", 4), (binary, os.environ["PATH"], 0)):
        done = subprocess.run([program, "crawl", "--help"], env={"PATH": path}, cwd=here, capture_output=True, text=True,
                              check=False)
        assert done.returncode == code and "here" not in done.stdout.replace(str(here), ""), done


def test_what_is_nowhere_names_the_extra_to_install(alone):
    answer = alone("crawl", "x.onnx", "--json")
    assert answer.code == 4 and "pip install 'tilewise[onnx]'" in answer.json["error"]["message"], answer
    assert f"no {alone.folder}/tilewise-crawl" in answer.err and "PATH" in answer.err


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb(run, verb):
    own = run(verb, "--help")
    assert own.code == 0 and own.out.startswith(f"usage: tilewise {verb}") and "--json" in own.out, own
    assert run("--help", verb).out == own.out
    listed = run("help", verb)
    assert listed.code == 0 and f"usage: tilewise {verb}" in listed.out and f"tilewise {verb} --help" in listed.out
    assert f"\n  {verb} " in run("--help").out


@pytest.mark.parametrize("words", [["crawl", "/nowhere/x.onnx"], ["convert", "/nowhere/x.csv", "--out", "x.csv"],
                                   ["report", "/nowhere/x.csv", "--out", "x.html"],
                                   ["train", "--data_dir", "/nowhere/x", "--out_dir", "x"],
                                   ["validate", "heuristic", "--data", "/nowhere/x.csv", "--dtype", "bf16"],
                                   ["cluster", "--problems", "/nowhere/x.txt", "--device", "cpu", "--local", "1", "--out", "/tmp/x.csv"]])
def test_a_missing_file_is_named(run, words):
    answer = run(*words, "--json")
    assert answer.code == 2 and answer.json["error"]["code"] == 2, answer
    assert "/nowhere/x" in answer.err and answer.err.startswith(f"tilewise {words[0]}: ")


def test_pip_installs_a_program_for_each_verb(root):
    lines = (root / "pyproject.toml").read_text().splitlines()
    assert [line for line in lines if line.startswith("tilewise-")] == [
        f'tilewise-{verb} = "tilewise._verbs:program"' for verb in VERBS]
