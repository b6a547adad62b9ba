# SPDX-License-Identifier: MIT
"""An exception of a verb becomes a message and an exit code."""
import json
import subprocess
import sys

import pytest

from tilewise import _verbs


@pytest.fixture
def verb(monkeypatch):
    """verb(error): a verb that raises it."""

    def put(error):
        class Module:
            @staticmethod
            def main(words):
                raise error

        monkeypatch.setitem(sys.modules, "tilewise.crawl", Module)

    return put


def test_a_missing_module_names_the_extra(monkeypatch, capsys, tmp_path):
    (tmp_path / "net.onnx").touch()
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert _verbs.main(["crawl", str(tmp_path / "net.onnx")]) == 4
    assert capsys.readouterr().err == "tilewise crawl: it needs onnx, which is not installed; pip install 'tilewise[onnx]' has it\n"


@pytest.mark.parametrize("error, code, told", [
    (_verbs.usage_error("no such thing"), 2, "no such thing"),
    (FileNotFoundError(2, "No such file or directory", "a.csv"), 2, "a.csv: No such file or directory"),
])
def test_errors_are_said_as_the_command_says_them(verb, capsys, error, code, told):
    verb(error)
    assert _verbs.main(["crawl", "--json"]) == code
    out, err = capsys.readouterr()
    assert json.loads(out) == {"error": {"code": code, "message": told}} and err == f"tilewise crawl: {told}\n"


def test_a_fault_keeps_its_trace(verb):
    verb(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        _verbs.main(["crawl"])


def test_python_runs_verbs_and_commands():
    def run(*words):
        return subprocess.run([sys.executable, "-m", "tilewise", *words], capture_output=True, text=True, check=False)
    assert run("crawl", "--help").stdout.startswith("usage: tilewise crawl")
    assert run("--version").stdout.startswith("tilewise ")
    assert "this package has the verbs cluster, convert, crawl, predict, report, train, validate" in subprocess.run(
        [sys.executable, "-c", "from tilewise._verbs import main; main(['nonsense'])"], capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("verb", _verbs.VERBS)
def test_wrong_words_are_errors_in_json_too(verb, capsys):
    pytest.importorskip("pandas")
    assert _verbs.main([verb, "--nonsense", "--json"]) == 2
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert error["code"] == 2 and "required" in error["message"] and err.startswith(f"usage: tilewise {verb}")
    assert err.endswith(f"tilewise {verb}: {error['message']}\n")


def test_output_that_nobody_takes_is_no_traceback():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "tilewise", "crawl", "nowhere.onnx", "--json"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and done.stderr == "tilewise crawl: nowhere.onnx: no such file\n"
