# SPDX-License-Identifier: MIT
"""Getting ready for problems: recording them, compiling and measuring them ahead, and kernels that serve meanwhile."""
import json
import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import tilewise
from tilewise import _entry, _recording, _warm

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
A, B = np.ones((64, 32), np.float32), np.ones((48, 32), np.float32)


def test_recording_collects_in_place_of_running():
    tilewise.gemm(A, B)  # prepared before: recorded all the same
    entries = len(_entry.entries)
    with tilewise.recording() as recorded:
        out = np.zeros((64, 48), np.float32)
        assert tilewise.gemm(A, B, out=out) is out and not out.any()
        tilewise.gemm(A, B, bias=np.ones(48, np.float32), activation="relu")
        y = tilewise.conv_forward(np.ones((1, 8, 8, 1, 4), np.float32), np.ones((1, 6, 3, 3, 4), np.float32))
        tilewise.gemm(A, B)
    assert y.shape == (1, 6, 6, 1, 6)
    texts = recorded.problems()
    assert texts[:2] == [GEMM, f"{GEMM},epilogue=bias+relu"] and texts[2].startswith("conv_fwd:") and len(texts) == 3
    assert recorded.devices == ["cpu"] and recorded.problems("cpu") == texts and recorded.problems("cuda:0") == []
    assert len(_entry.entries) == entries, "nothing is kept"
    assert (tilewise.gemm(A, B) == 32).all(), "and afterwards all runs again"


def test_recording_checks_operands():
    with tilewise.recording() as recorded:
        with pytest.raises((ValueError, tilewise.Error)):
            tilewise.gemm(A, np.ones((48, 31), np.float32))
    assert recorded.problems() == []


def in_a_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_recordings_of_threads_are_apart():
    first, second = tilewise.recording(), tilewise.recording()
    recorded = first.__enter__()
    assert (in_a_thread(lambda: tilewise.gemm(A, B)) == 32).all(), "another thread goes on running"
    entered, leave = threading.Event(), threading.Event()

    def record():
        with second as other:
            entered.set()
            leave.wait(60)
            tilewise.gemm(A, B, activation="relu")
        return other.problems()

    results = []
    thread = threading.Thread(target=lambda: results.append(record()))
    thread.start()
    assert entered.wait(60)
    tilewise.gemm(A, B)
    first.__exit__(None, None, None)
    leave.set()
    thread.join()
    assert recorded.problems() == [GEMM] and results == [[f"{GEMM},epilogue=relu"]]
    assert (tilewise.gemm(A, B) == 32).all(), "whoever ends first"


class TorchOfThreads:
    """What torch keeps for a thread and gives to those that compute its gradients."""

    def __init__(self):
        self.kept = {}
        self.Tensor = type("Tensor", (), {})
        self._C = types.SimpleNamespace(_stash_obj_in_tls=self.kept.__setitem__, _get_obj_in_tls=self.kept.get,
                                        _is_key_in_tls=self.kept.__contains__)


def test_a_recording_within_a_gradient_leaves_the_outer_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", TorchOfThreads())
    monkeypatch.setattr(_recording, "_torch_counts", lambda: True)

    def gradient():
        tilewise.gemm(A, B)
        with tilewise.recording() as inner:  # as torch.compile does, to get ready for a graph of gradients
            tilewise.gemm(A, B, activation="silu")
        tilewise.gemm(A, B, activation="relu")
        return inner.problems()

    with tilewise.recording() as outer:
        assert in_a_thread(gradient) == [f"{GEMM},epilogue=silu"]
    assert outer.problems() == [GEMM, f"{GEMM},epilogue=relu"]
    assert (in_a_thread(lambda: tilewise.gemm(A, B)) == 32).all()


def test_a_recording_where_the_import_of_torch_is_blocked(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with tilewise.recording() as recorded:
        tilewise.gemm(A, B)
    assert recorded.problems() == [GEMM]


def test_errors_of_a_list():
    with pytest.raises(tilewise.UsageError, match="the list of problems:2"):
        tilewise.build([GEMM, "gemm:m=1"])
    with pytest.raises(tilewise.UsageError, match="jobs is -1"):
        tilewise.build([GEMM], jobs=-1)
    with pytest.raises(tilewise.UnsupportedError, match="the list of problems:1: impossible"):
        tilewise.build(["conv_bwd_data:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=int8"])


def run(program, **environment):
    """Runs a program in a process of its own; its last line is JSON."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    assert "\r" not in done.stderr, "no bar, since that is no terminal"
    return json.loads(done.stdout.splitlines()[-1])


BUILD = f"""
import json, tilewise
told = []
built = [tilewise.build(["{GEMM}", "{GEMM}"], jobs=2, progress=how) for how in (lambda *given: told.append(given), None)]
print(json.dumps([built[0].kernels, built[0].errors, [one.compiled for one in built], told]))
"""
PREPARED = f"""
import json, tilewise
print(json.dumps(tilewise.prepare("{GEMM}").kernel))
"""


@pytest.mark.compiles
def test_what_was_built_needs_no_compiler(tmp_path):
    cache = {"TILEWISE_CACHE_DIR": str(tmp_path)}
    kernels, errors, compiled, told = run(BUILD, **cache)
    assert list(kernels) == [GEMM] and errors == {} and compiled == [len(told), 0] and len(told) <= 1
    assert told in ([], [[1, 1, kernels[GEMM]]])
    assert run(PREPARED, **cache, TILEWISE_CXX="/nonexistent") == kernels[GEMM]


STOPPED = f"""
import json, tilewise
def stop(*given):
    raise KeyboardInterrupt
try:
    tilewise.build(["{GEMM}", "gemm:m=500,n=400,k=300,dtype=bf16,layout=rrr"], progress=stop)
    print('"went on"')
except KeyboardInterrupt:
    print('"stopped"')
"""


@pytest.mark.compiles
def test_an_interrupt_stops_the_compilers(tmp_path):
    assert run(STOPPED, TILEWISE_CACHE_DIR=str(tmp_path)) == "stopped"


SERVED = """
import json, time, numpy as np, tilewise
from tilewise import _entry, _library
a, b = np.ones((300, 200), np.float16), np.ones((333, 200), np.float16)  # no learned model chooses for these
results, origins = [tilewise.gemm(a, b)], []
executable = next(iter(_entry.entries.values())).executable
kinds = [note["kind"] for note in executable.plan.notes]
origin = lambda: _library.call("tilewise_executable_describe", executable._handle)["origin"]
first = origin()
deadline = time.monotonic() + 60 * WAIT
while origin() == "builtin" and time.monotonic() < deadline:
    time.sleep(0.05)
results.append(tilewise.gemm(a, b))
print(json.dumps([first, origin(), kinds, all(bool((c == 200).all()) for c in results)]))
"""


@pytest.mark.compiles
def test_a_built_in_kernel_serves_while_a_better_one_is_compiled(tmp_path):
    cache = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_BACKGROUND": "1"}
    first, last, kinds, right = run(SERVED.replace("WAIT", "1"), **cache)
    if first != "builtin":
        pytest.skip("this build has no built-in kernels")
    assert (last, kinds, right) == ("built", ["background"], True)
    assert run(SERVED.replace("WAIT", "1"), **cache)[:3] == ["cache", "cache", []]


@pytest.mark.compiles
def test_the_end_of_a_process_does_not_wait_for_its_compiler(tmp_path):
    slow = tmp_path / "slow-c++"
    slow.write_text(f"""#!/bin/sh
case "$*" in *-shared*) echo $$ >> {tmp_path}/started; exec sleep 600;; esac
exec c++ "$@"
""")
    slow.chmod(0o755)
    environment = {"TILEWISE_CACHE_DIR": str(tmp_path / "cache"), "TILEWISE_CXX": str(slow), "TILEWISE_BACKGROUND": "1"}
    program = SERVED.replace("WAIT", "0").replace("results.append", """
import os
while not os.path.exists(STARTED): time.sleep(0.05)
results.append""".replace("STARTED", repr(str(tmp_path / "started"))))
    first, last, kinds, right = run(program, **environment)
    assert (first, last, kinds, right) == ("builtin", "builtin", ["background"], True)
    for pid in (tmp_path / "started").read_text().split():
        assert not os.path.exists(f"/proc/{pid}"), "the compiler is gone, too"
    assert not list((tmp_path / "cache").glob("failed/*")), "stopping is no failure"


@pytest.mark.compiles
def test_waiting_can_be_asked_for(tmp_path):
    first, _, kinds, right = run(SERVED.replace("WAIT", "1"), TILEWISE_CACHE_DIR=str(tmp_path), TILEWISE_BACKGROUND="0")
    assert (first, kinds, right) == ("built", [], True)
    with pytest.raises(AssertionError, match="TILEWISE_BACKGROUND is 'no'; need 0 or 1"):
        run(SERVED.replace("WAIT", "1"), TILEWISE_BACKGROUND="no")


TUNED = f"""
import json, numpy as np, tilewise
problems = ["{GEMM}"]
a, b = np.ones((64, 32), np.float32), np.ones((48, 32), np.float32)
source = lambda: (tilewise.gemm(a, b), next(iter(tilewise._entry.entries.values())).executable.plan.source)[1]
before = source()
first = tilewise.tune(problems, seconds=30)
after, none = source(), tilewise.tune(problems, seconds=0)
print(json.dumps([before, after, list(first.kernels), first.errors, first.left, none.left]))
"""


@pytest.mark.compiles
def test_tuned_kernels_are_taken_from_then_on(tmp_path):
    before, after, tuned, errors, left, all_left = run(TUNED, TILEWISE_CACHE_DIR=str(tmp_path))
    assert before in ("rules", "model") and (after, tuned, errors, left) == ("tuned", [GEMM], {}, [])
    assert all_left == [GEMM], "no time, nothing begun"


@pytest.mark.parametrize("given, is_terminal, shown", [(None, False, False), (None, True, True), (False, True, False),
                                                       (True, False, True)])
def test_the_bar_is_for_terminals(monkeypatch, capsys, given, is_terminal, shown):
    monkeypatch.setattr(_warm, "_is_terminal", lambda: is_terminal)
    tell, close = _warm.progress_of(given)
    assert (tell is not None) == shown
    if tell:
        tell(1, 2, "a kernel")
        assert "[##########..........] 1 of 2  a kernel" in capsys.readouterr().err
    close()
