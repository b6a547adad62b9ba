# SPDX-License-Identifier: MIT
"""tilewise completion: scripts that the shells accept and that offer the right words."""
import shlex
import subprocess

import pytest

COMMANDS = ["run", "kernels", "check", "arch", "select", "build", "bench", "tune", "sweep", "problems", "fit", "cluster",
            "convert", "crawl", "predict", "report", "train", "validate", "cache", "doctor", "completion", "help"]

VERBS = {"cluster", "convert", "crawl", "predict", "report", "train", "validate"}


def complete(script, *words):
    """The words that bash offers for the last one."""
    line = " ".join(shlex.quote(word) for word in words)
    program = (f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _tilewise\n"
               'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True, cwd="/")
    assert not done.stderr
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def bash(run):
    answer = run("completion", "bash")
    assert answer.code == 0
    return answer.out


def test_bash_accepts_the_script(bash):
    subprocess.run(["bash", "-n"], input=bash, text=True, check=True)


@pytest.mark.parametrize("words, offered", [
    (["tilewise", ""], set(COMMANDS)),
    (["tilewise", "c"], {"cache", "check", "cluster", "completion", "convert", "crawl"}),
    (["tilewise", "kernels", "--arch", "g"], {"gfx90a", "gfx942", "gfx950"}),
    (["tilewise", "select", "x", "--arch", "sm"], {"sm_80", "sm_90a"}),
    (["tilewise", "kernels", "--rule-set", "full"], {"full", "full-tests"}),
    (["tilewise", "kernels", "--op", "conv_b"], {"conv_bwd_data", "conv_bwd_weight"}),
    (["tilewise", "kernels", "--dtype", "bf"], {"bf16", "bf8"}),
    (["tilewise", "check", "--f"], {"--fix"}),
    (["tilewise", "doctor", "--color", "a"], {"always", "auto"}),
    (["tilewise", "arch", "cpu-a"], {"cpu-amx", "cpu-avx2", "cpu-avx512"}),
    (["tilewise", "completion", "z"], {"zsh"}),
    (["tilewise", "problems", "gemm_t"], {"gemm_test", "gemm_training"}),
    (["tilewise", "bench", "--problems", "cpu_gemm_t"], {"cpu_gemm_test", "cpu_gemm_training"}),
    (["tilewise", "crawl", "--"], {"--help", "--json"}),
    (["tilewise", "cache", "p"], {"prune"}),
    (["tilewise", "cache", "s"], {"stats"}),
    (["tilewise", "help", "do"], {"doctor"}),
    (["tilewise", "--json", "cache", "v"], {"verify"}),
    (["tilewise", "fit", "times.csv", "--chip", "h"], {"h200"}),
    (["tilewise", "fit", "times.csv", "--family", "gemv"], {"gemv", "gemv_rows"}),
])
def test_bash_offers(bash, words, offered):
    assert complete(bash, *words) == offered


def test_bash_offers_files_beside_sets(bash, tmp_path):
    (tmp_path / "mine.txt").touch()
    assert complete(bash, "tilewise", "tune", "--problems", f"{tmp_path}/m") == {f"{tmp_path}/mine.txt"}


def test_bash_offers_the_options_of_the_command(bash, run):
    for command in set(COMMANDS) - VERBS:  # programs of their own know theirs
        offered = complete(bash, "tilewise", command, "--")
        shown = {word for line in run(command, "--help").out.splitlines() if line.startswith("  --")
                 for word in line.split()[:1]}
        assert offered == shown


def test_fish_has_every_command(run):
    answer = run("completion", "fish")
    assert answer.code == 0
    for command in COMMANDS:
        assert f"-a {command} " in answer.out


def test_fish_lines_are_whole_words(run):
    """An apostrophe in a help text must not end the quoted word it stands in."""
    for line in run("completion", "fish").out.splitlines():
        words = shlex.split(line)
        assert words[:3] == ["complete", "-c", "tilewise"]
        if "-d" in words:
            rest = words[words.index("-d") + 2:]
            assert all(word in ("-r", "-f", "-a") or rest[i - 1] == "-a" for i, word in enumerate(rest)), line


def test_zsh_is_bash_with_its_loader(run, bash):
    out = run("completion", "zsh").out
    assert out.startswith("#compdef tilewise\n") and "bashcompinit" in out and out.endswith(bash)


def test_unknown_shell(run):
    answer = run("completion", "bsh")
    assert answer.code == 2 and "did you mean 'bash'?" in answer.err, answer
    assert run("completion").code == 2
