# SPDX-License-Identifier: MIT
"""tilewise cluster: problems shared by workers, one of them killed; one writer; going on with a file."""
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("distributed")

from tilewise import _library  # noqa: E402
from tilewise._cluster_task import read_cells  # noqa: E402
from tilewise._cluster_writer import Writer  # noqa: E402
from tilewise._verbs import main  # noqa: E402

PACKAGE = pathlib.Path(_library.__file__).parent
# A sweep of three kernels a problem: it says who ran it, and takes a moment. One problem waits for as long as it may, once.
SWEEP = """#!{python} -S
import csv, fcntl, os, sys, time
device = open({log!r} + ".device", "w")
fcntl.flock(device, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as a sweep does, which refuses to be the second on a device
words = dict(zip(sys.argv[2::2], sys.argv[3::2]))
line = open(words["--problems"]).read()
problem, _, network = line.partition("#")
with open({log!r}, "a") as log:
    log.write(f"{{os.getpid()}} {{os.getppid()}} {{problem}}\\n")
if "m=7," in problem and not os.path.exists({waited!r}):
    open({waited!r}, "w").close()
    time.sleep(60)
with open(words["--out"], "w", newline="") as file:
    table = csv.writer(file, lineterminator="\\n")
    table.writerow(["schema", "set", "network", "device", "problem", "kernel_name", "status", "reason"])
    for kernel in "abc":
        table.writerow([2, "one@0", network.strip(), "CPU", problem.strip(), kernel, "ok", "in\\ntwo lines"])
if "m=5," in problem:
    sys.exit("tilewise: a fault")
"""


@pytest.fixture
def place(tmp_path):
    """A copy of the package whose command is the sweep above; place.run(*words), place.log() -> [(pid, parent, problem)]."""
    shutil.copytree(PACKAGE, tmp_path / "python" / "tilewise", ignore=shutil.ignore_patterns("__pycache__", "torch", "bin", "lib"))
    program = tmp_path / "build" / "bin" / "tilewise"
    program.parent.mkdir(parents=True)
    log, waited = tmp_path / "log", tmp_path / "waited"
    waited.touch()
    program.write_text(SWEEP.format(python=sys.executable, log=str(log), waited=str(waited)))
    program.chmod(0o755)

    class Place:
        folder, waits = tmp_path, waited

        @staticmethod
        def problems(*sizes):
            path = tmp_path / "mine.txt"
            path.write_text("".join(f"gemm:m={m},n=8,k=8,dtype=fp32,layout=rcr  # net{m}\n" for m in sizes))
            return path

        @staticmethod
        def start(*words, out="out.csv"):
            environment = {**os.environ, "PYTHONPATH": str(tmp_path / "python"), "TILEWISE_LIBRARY": str(_library.path())}
            return subprocess.Popen([sys.executable, "-m", "tilewise", "cluster", "--device", "cpu", "--out", tmp_path / out, *words],
                                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        @staticmethod
        def log():
            return [line.split(maxsplit=2) for line in log.read_text().splitlines()] if log.exists() else []

        @staticmethod
        def keys(out="out.csv"):
            with open(tmp_path / out, newline="") as file:
                return sorted((row["problem"], row["kernel_name"]) for row in csv.DictReader(file))

    return Place


def is_running(pid):
    """Whether it is more than a name that nobody has asked after."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def expected(*sizes):
    return sorted((f"gemm:m={m},n=8,k=8,dtype=fp32,layout=rcr", kernel) for m in sizes for kernel in "abc")


def test_a_killed_worker_loses_nothing_and_a_file_is_gone_on_with(place):
    """Three workers; the one that has m=7 is killed in the midst of it, and its sweep with it."""
    place.waits.unlink()
    running = place.start("--problems", place.problems(*range(2, 12)), "--local", "3", "--json")
    limit = time.monotonic() + 120
    while not place.waits.exists() and time.monotonic() < limit and running.poll() is None:
        time.sleep(0.05)
    sweep, worker = next((int(pid), int(parent)) for pid, parent, problem in place.log() if "m=7," in problem)
    os.kill(worker, signal.SIGKILL)
    out, err = running.communicate(timeout=180)
    facts = json.loads(out)
    assert place.keys() == expected(*range(2, 12)), err
    assert facts["records"] == 30 and facts["problems"] == 10 and running.returncode == 1
    assert [error for error in facts["errors"] if "a fault" in error and "m=5," in error] == facts["errors"] and "a fault" in err
    assert not is_running(sweep), "the sweep of the lost worker still has the device"
    assert sum("m=7," in problem for _, _, problem in place.log()) == 2
    with open(place.folder / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["network"] for row in rows} == {f"net{m}" for m in range(2, 12)} and {row["reason"] for row in rows} == {"in\ntwo lines"}
    assert len({row["set"] for row in rows}) == 1 and rows[0]["set"].startswith("mine@") and len(rows[0]["set"]) == len("mine@") + 16

    # Killed while it wrote: the last record is torn, and its problem done again.
    path, before = place.folder / "out.csv", len(place.log())
    path.write_bytes(path.read_bytes()[:-9])
    last = rows[-1]["problem"]
    running = place.start("--problems", place.problems(*range(2, 12)), "--local", "1", "--resume")
    out, err = running.communicate(timeout=180)
    assert running.returncode == 0 or "m=5," in last, err
    assert place.keys() == expected(*range(2, 12))
    assert {problem.split("#")[0].strip() for _, _, problem in place.log()[before:]} == {last}


ROW = ["2", "mine@0", "CPU", "gemm:m=1", "a"]
HEADER = ["schema", "set", "device", "problem", "kernel_name"]


def test_the_writer_refuses_what_does_not_belong_together(tmp_path):
    path = str(tmp_path / "out.csv")
    writer = Writer(path, False)
    writer.add(HEADER, [ROW])
    with pytest.raises(_library.UsageError, match="records of device 'GPU' came; those there are of 'CPU'"):
        writer.add(HEADER, [[*ROW[:2], "GPU", *ROW[3:]]])
    with pytest.raises(_library.UsageError, match="of another version"):
        writer.add(HEADER[:-1], [ROW[:-1]])
    writer.close()
    with pytest.raises(_library.UsageError, match="its records are of set mine@0, these would be of mine@1"):
        Writer(path, True, {"set": "mine@1"})
    again = Writer(path, True, {"set": "mine@0"})
    assert again.done == set()  # the problem that came last may not be whole
    again.add(HEADER, [ROW])
    again.close()
    assert pathlib.Path(path).read_text().count("gemm:m=1") == 1


def test_a_file_of_something_else_stays_as_it_is(tmp_path):
    path = tmp_path / "out.csv"
    for text in ("my diary", 'a,b\n1,2\n', '"a quote that never ends\n'):
        path.write_text(text)
        with pytest.raises(_library.UsageError, match="no file of records"):
            Writer(str(path), True)
        assert path.read_text() == text
    path.write_text("schema,se")  # of a process that was killed at once
    Writer(str(path), True).close()
    assert path.read_text() == ""


def test_a_cell_may_have_any_character(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text('problem,reason\np,a\u2028b\x0cc\nq,"d\r\ne"\nr,"f\n', newline="")
    assert read_cells(path) == (["problem", "reason"], [["p", "a\u2028b\x0cc"], ["q", "d\r\ne"]])


@pytest.mark.parametrize("words, told", [
    (["--local", "2"], "required: --problems"), (["--problems", "nonsense", "--local", "2"], "--problems nonsense: no such file, and "),
    (["--problems", "x", "--local", "0"], "--local 0: need at least 1"), (["--problems", "x", "--local", "1", "--shard", "1/2"], "--shard is not"),
    (["--problems", "x"], "--scheduler --local is required"), (["--problems", "x", "--local", "1", "--out", "/nowhere/x.csv"], "its folder"),
])
def test_what_cannot_be_is_said(tmp_path, capsys, words, told):
    try:
        code = main(["cluster", "--device", "cpu", "--out", str(tmp_path / "out.csv"), *words])
    except SystemExit as exit:
        code = exit.code
    assert code == 2 and told in capsys.readouterr().err.replace("one of the arguments ", "")


def test_records_that_are_there_are_not_overwritten(tmp_path, capsys):
    (tmp_path / "out.csv").write_text("schema\n")
    assert main(["cluster", "--device", "cpu", "--problems", "x", "--local", "1", "--out", str(tmp_path / "out.csv")]) == 2
    assert "give --resume" in capsys.readouterr().err
