# SPDX-License-Identifier: MIT
"""Rules for every command: help, errors, colours, exit codes."""
import json
import os
import re
import subprocess

import pytest

COMMANDS = ["run", "kernels", "check", "arch", "select", "build", "bench", "tune", "cache", "doctor", "completion"]
ESCAPE = "\x1b["


@pytest.mark.parametrize("words, code", [
    (["nonsense"], 2), (["kernels", "--bogus"], 2), (["arch", "nowhere"], 2), (["select", "gemm:m=1"], 2),
    (["select", "gemm:m=-1,n=1,k=1,dtype=bf16"], 3), (["check", "{"], 2), (["check", "nowhere.json"], 2),
    (["completion", "tcsh"], 2), (["kernels", "--arch-file", "nowhere.json"], 2), (["--color", "blue", "arch"], 2),
    ([], 2),
])
def test_json_errors(run, words, code):
    """Programs read stdout, people read stderr: both get the message."""
    answer = run(*words, "--json")
    assert answer.code == code, answer
    error = answer.json["error"]
    assert error["code"] == code and error["message"]
    assert error["message"] in answer.err
    plain = run(*words)
    assert plain.code == code and not plain.out and plain.err.startswith("tilewise: "), plain


def test_json_errors_are_json_whatever_the_input(run):
    """Bytes that are not UTF-8, and messages cut inside a character, still give valid JSON."""
    for word in (b"gemm:m=\xff", b"gemm:" + b"x" * 63 + "ü=1".encode(), b"gemm:m=\x01\"\\"):
        answer = run("select", word, "--json")
        assert answer.code == 2 and answer.json["error"]["message"], answer


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(run, command):
    answer = run(command, "--help")
    assert answer.code == 0 and not answer.err
    assert answer.out.startswith(f"tilewise {command}: ") and f"usage: tilewise {command}" in answer.out
    lines = answer.out.splitlines()
    assert "--json" in answer.out and all(len(line) <= 120 for line in lines)
    options = [line for line in lines if line.startswith("  --")]
    assert all(line[2:].partition("  ")[2].strip() for line in options), "an option stands apart from what it does"
    assert run(command, "-h").out == answer.out
    assert run("--help", command).out == answer.out


def test_help(run):
    answer = run("--help")
    assert answer.code == 0 and all(f"  {command} " in answer.out for command in COMMANDS)
    assert "Exit codes" in answer.out


def test_nothing_asked_is_a_usage_error(run):
    answer = run()
    assert answer.code == 2 and "usage: tilewise" in answer.out + answer.err


def test_version(run, root):
    text = (root / "CMakeLists.txt").read_text()
    number = text.split("project(tilewise VERSION ")[1].split()[0]
    version = run("--version", "--json").json["version"]
    assert re.fullmatch(re.escape(number) + r"(\+g[0-9a-f]{12}(\.dirty)?)?", version)
    assert run("--version").out == f"tilewise {version}\n"


def test_the_manual_has_every_command(run):
    page, listed = run("help", "--man"), run("help", "--json").json
    assert page.code == 0 and page.out.startswith(".TH TILEWISE 1")
    for command in listed["commands"]:
        assert f"\n.SS {command['name']}".replace("-", "\\-") in page.out
        for option in command["options"]:
            assert "\\fB\\-\\-" + option["name"].replace("-", "\\-") in page.out
    assert {"TILEWISE_CACHE_DIR", "TILEWISE_THREADS"} <= {variable["name"] for variable in listed["environment"]}
    bare = [line for line in page.out.splitlines() if line.startswith("'")]
    assert not bare


@pytest.mark.parametrize("words, told", [
    (["kernel"], "did you mean 'kernels'?"),
    (["selct", "x"], "did you mean 'select'?"),
    (["qqqqqqqq"], "one of: run, kernels"),
    ([""], "one of: run, kernels"),
    (["kernels", "--ach", "gfx942"], "did you mean"),
    (["kernels", "--rule_set", "full"], "rule-set"),
    (["--versio"], "did you mean"),
    (["kernels", "-x"], "'-x'"),
    (["kernels", "--json=1"], "takes no value"),
    (["kernels", "--arch-file"], "needs a value"),
])
def test_unknown_words_get_a_suggestion(run, words, told):
    answer = run(*words)
    assert answer.code == 2 and told in answer.err and not answer.out, answer


def test_option_may_be_written_with_an_equals_sign(run):
    assert run("kernels", "--arch=gfx942", "--rule-set=tiny").out == run("kernels", "--arch", "gfx942", "--rule-set",
                                                                         "tiny").out


def test_the_last_of_a_repeated_option_counts(run):
    assert run("kernels", "--arch", "sm_80", "--arch", "gfx942", "--count").out == run("kernels", "--arch", "gfx942",
                                                                                       "--count").out


def test_after_two_dashes_all_words_are_operands(run):
    answer = run("check", "--", "--fix")
    assert answer.code == 2 and "cannot read '--fix'" in answer.err, answer


COLOURED = [["arch"], ["kernels", "--rule-set", "tiny"], ["doctor"], ["select", "gemm:m=64,n=64,k=64,dtype=fp32"]]


@pytest.mark.parametrize("words", COLOURED)
def test_colours_when_always_and_none_when_piped_or_never(run, words, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path)}  # what doctor says of a cache that other tests use changes meanwhile
    coloured = run(*words, "--color", "always", env=env).out
    assert ESCAPE in coloured
    plain = run(*words, env=env).out
    assert ESCAPE not in plain and run(*words, "--color", "never", env=env).out == plain
    assert ESCAPE not in run(*words, "--json", "--color", "always", env=env).out, "JSON is never coloured"


@pytest.fixture
def on_a_terminal(binary, run_on_a_terminal):
    """on_a_terminal(*words, **variables) -> what the command writes when its output is a terminal."""
    def written(*words, **variables):
        env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        code, _, shown = run_on_a_terminal([binary, *words], {**env, **variables}, "stdout")
        assert code == 0
        return shown
    return written


def test_terminal_gets_colours_unless_told_not_to(on_a_terminal):
    assert ESCAPE in on_a_terminal("arch")
    assert ESCAPE not in on_a_terminal("arch", NO_COLOR="1")
    assert ESCAPE not in on_a_terminal("arch", "--color", "never")


@pytest.mark.parametrize("words", [["kernels"], ["kernels", "--json"], ["arch"], ["--help"]])
def test_output_that_cannot_be_written_is_an_error(binary, words):
    """A full disk must not look like success."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary, *words], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode not in (0, 3) and done.returncode > 0


def test_reader_that_stops_early_is_no_error_message(binary):
    done = subprocess.run(["bash", "-c", '"$0" kernels --rule-set full | head -n 1', binary], capture_output=True,
                          text=True, check=True)
    assert done.stdout.startswith("id") and not done.stderr


def test_tables_are_aligned(run):
    """Every cell of a column starts where its heading does."""
    lines = run("kernels", "--arch", "gfx942", "--rule-set", "tiny").out.splitlines()[:-1]
    for heading in ("available", "name"):
        at = lines[0].index(heading)
        assert all(line[at - 1] == " " and line[at] != " " for line in lines)


def test_json_of_every_command_parses(run):
    for words in (["kernels", "--rule-set", "tiny"], ["check", "{}"], ["arch"], ["arch", "sm_80"], ["doctor"],
                  ["select", "gemm:m=8,n=8,k=8,dtype=fp32"]):
        json.loads(run(*words, "--json").out)
