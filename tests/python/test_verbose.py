# SPDX-License-Identifier: MIT
"""The library's reports in Python: set_verbose, warnings, the command, threads, and how much is kept."""
import os
import subprocess
import sys

import pytest

import tilewise

PRELUDE = "import numpy as np, tilewise; a = np.ones((4, 8), np.float32); b = np.ones((6, 8), np.float32)\n"


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", PRELUDE + code], env={**os.environ, **environment}, capture_output=True,
                          text=True, check=True)


@pytest.mark.compiles
def test_set_verbose(tmp_path):
    done = run("tilewise.gemm(a, b); tilewise.set_verbose(); tilewise.gemm(a, b[:5]); tilewise.set_verbose(0);"
               "tilewise.gemm(a, b[:4])", TILEWISE_CACHE_DIR=os.fspath(tmp_path))
    verbs = [line.split()[1] for line in done.stderr.splitlines()]
    assert verbs[0] == "choose" and verbs[-1] == "run" and "n=5" in done.stderr and "n=6" not in done.stderr
    assert "n=4" not in done.stderr
    with pytest.raises(tilewise.UsageError, match="level is 7"):
        tilewise.set_verbose(7)


@pytest.mark.compiles
def test_notes_are_warnings_once_for_each_kind():
    done = run("import warnings\n"
               "with warnings.catch_warnings(record=True) as caught:\n"
               "    warnings.simplefilter('always')\n"
               "    tilewise.gemm(a, b); tilewise.gemm(a, b[:5])\n"
               "print([(w.category.__name__, w.filename, 'cache' in str(w.message)) for w in caught])",
               TILEWISE_CACHE_DIR="/proc/none")
    assert done.stdout.strip() == "[('TilewiseWarning', '<string>', True)]"


def test_the_command():
    for words, code in ((["--version"], 0), (["help"], 0), (["nonsense"], 2)):
        done = subprocess.run([sys.executable, "-m", "tilewise", *words], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                              capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
    assert "tilewise: unknown command 'nonsense'" in done.stderr


def test_threads_of_torch_are_respected():
    torch = pytest.importorskip("torch")
    a, b, before = torch.ones(512, 512), torch.ones(512, 512), torch.get_num_threads()
    entries = sys.modules["tilewise._entry"].entries
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            entries.clear()
            tilewise.gemm(a, b)
            (entry,) = entries.values()
            assert entry.executable.threads <= count
    finally:
        torch.set_num_threads(before)


def test_only_so_many_calls_are_kept():
    done = run("from tilewise import _entry\n"
               "for n in range(1, 41): tilewise.gemm(a, np.ones((n, 8), np.float32))\n"
               "print(len(_entry.entries))\n"
               "again = tilewise.gemm(a, np.ones((1, 8), np.float32)); assert (again == 8).all()",
               TILEWISE_PLAN_CACHE="8")
    assert int(done.stdout) <= 8


def test_memory_does_not_grow_with_distinct_problems():
    """Of 4 KiB each, five hundred problems would take 2 MB."""
    done = run("import resource\n"
               "def many(first):\n"
               "    for m in range(first, first + 500):\n"
               "        tilewise.gemm(np.ones((m, 8), np.float32), b)\n"
               "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
               "before = many(1); after = many(501); print(after - before)", TILEWISE_PLAN_CACHE="64")
    assert int(done.stdout) < 1024, f"{done.stdout} KiB more"


def test_a_plan_cache_that_makes_no_sense():
    done = subprocess.run([sys.executable, "-c", PRELUDE + "tilewise.gemm(a, b)"], capture_output=True, text=True, check=False,
                          env={**os.environ, "TILEWISE_PLAN_CACHE": "1"})
    assert done.returncode and "TILEWISE_PLAN_CACHE is '1'" in done.stderr
