# SPDX-License-Identifier: MIT
"""Runs the built tilewise command as a user does: words in, exit code and texts out."""
import json
import os
import pathlib
import pty
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "build" / "bin" / "tilewise"
LIMIT_SECONDS = 60


class Answer:
    """The result of one run of the command."""

    def __init__(self, code, out, err):
        self.code, self.raw_out, self.raw_err = code, out, err
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.raw_out.decode("utf-8"))  # strictly: what is not UTF-8 is not JSON

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out[:2000]}\n--- stderr\n{self.err[:2000]}"


def environment(**changes):
    """The environment without what would change the command's behaviour."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TILEWISE_") and key != "NO_COLOR"}
    return {**clean, **changes}


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def binary():
    if not BINARY.is_file():
        pytest.fail(f"{BINARY.relative_to(ROOT)} is missing; run: make build")
    return BINARY


@pytest.fixture(scope="session")
def run(binary):
    """run(*words, stdin="", env={}, limit_s=60) -> Answer; a death by signal fails the test at once."""

    def call(*words, stdin="", env=None, limit_s=LIMIT_SECONDS, **options):
        done = subprocess.run([binary, *words], input=stdin.encode() if isinstance(stdin, str) else stdin,
                              capture_output=True, env=environment(**(env or {})), cwd=ROOT, timeout=limit_s,
                              check=False, **options)
        assert done.returncode >= 0, f"died of signal {-done.returncode}: {words}"
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def ask(run):
    """ask(*words) -> the JSON of a run that must succeed."""

    def call(*words, **options):
        answer = run(*words, "--json", **options)
        assert answer.code == 0, answer
        return answer.json

    return call


@pytest.fixture(scope="session")
def machine(ask):
    """What doctor finds here, {check: found}; it expands every rule set, so once is enough."""
    return {item["check"]: item["found"] for item in ask("doctor")["checks"]}


@pytest.fixture(scope="session")
def quick_compiler(root):
    return str(root / "tests/quick_compiler")


@pytest.fixture(scope="session")
def cached(run, quick_compiler, tmp_path_factory):
    """run(), with a cache that the tests of a session share, so that each kernel is compiled once, and quickly: these tests look at
    the command, those of tests/run at kernels; cached.folder."""
    folder = tmp_path_factory.mktemp("cache")

    def call(*words, env=None, **options):
        return run(*words, env={"TILEWISE_CACHE_DIR": str(folder), "TILEWISE_CXX": quick_compiler, **(env or {})}, **options)

    call.folder = folder
    return call


@pytest.fixture(scope="session")
def ask_cached(cached):
    """ask(), with the shared cache."""

    def call(*words, **options):
        answer = cached(*words, "--json", **options)
        assert answer.code == 0, answer
        return answer.json

    return call


@pytest.fixture(scope="session")
def a_kernel(ask):
    """A valid kernel to bend: {name, id, available, config}."""
    return ask("kernels", "--arch", "gfx942", "--op", "gemm", "--dtype", "bf16", "--rule-set", "tests")["kernels"][0]


@pytest.fixture
def new_arch(root, tmp_path):
    """new_arch(edit) -> an arch file like gfx942 named gfx-new, changed by edit(dict) or edit(text) -> text."""

    def make(edit=None):
        spec = json.loads((root / "arch/gfx942.json").read_text())
        spec["name"] = "gfx-new"
        spec["chip"] = json.loads((root / f"chips/{spec['chip']}.json").read_text())
        if edit:
            edit(spec)
        path = tmp_path / "gfx-new.json"
        path.write_text(json.dumps(spec, indent=1))
        return path

    return make


def _run_on_a_terminal(command, env, output):
    """`output`, "stdout" or "stderr", is the terminal. -> (exit code, stdout if that is not, what the terminal got)"""
    master, slave = pty.openpty()
    outputs = {"stdout": subprocess.PIPE, "stderr": None} | {output: slave}
    child = subprocess.Popen(command, env=env, **outputs)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    out = child.communicate()[0]
    return child.returncode, (out or b"").decode(), shown.decode()


@pytest.fixture(scope="session")
def run_on_a_terminal():
    return _run_on_a_terminal
