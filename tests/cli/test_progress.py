# SPDX-License-Identifier: MIT
"""Progress bars: on a terminal, on stderr, and gone before anything else is printed. Without one nothing is shown; the
tests of each command see that."""
import json
import os
import re

import pytest

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
OTHER = "gemm:m=16,n=80,k=48,dtype=fp32,layout=rcr"
# No other test tunes these: a kernel that was found before is measured beside the first of the ranking.
NEVER_TUNED = ["gemm:m=65,n=49,k=33,dtype=fp32,layout=rcr", "gemm:m=17,n=81,k=49,dtype=fp32,layout=rcr"]
POOL = ("--arch", "cpu-generic", "--rule-set", "tiny")
ERASE = "\r\x1b[K"


@pytest.fixture(scope="module")
def on_a_terminal(binary, cached, run_on_a_terminal):
    """on_a_terminal(*words) -> (exit code, stdout, what the terminal got that stderr is)."""
    return lambda *words: run_on_a_terminal([binary, *words], {**os.environ, "TILEWISE_CACHE_DIR": str(cached.folder)},
                                            "stderr")


@pytest.mark.parametrize("words, steps", [
    (["bench", GEMM, OTHER, "--strategy", "rules", *POOL], ["0 of 4", "1 of 4", "2 of 4", "3 of 4"]),
    (["tune", NEVER_TUNED[0], "--top", "2", "--again", *POOL], ["0 of 3", "1 of 3", "2 of 3"]),
    (["run", NEVER_TUNED[1], "--strategy", "measure", "--top", "1", "--again", *POOL], ["0 of 2", "1 of 2"]),
    (["build", *POOL, "--op", "gemm", "--dtype", "fp32", "--jobs", "2"], ["1 of 9", "9 of 9"]),
])
def test_a_bar_shows_each_step_and_goes(on_a_terminal, words, steps):
    code, out, shown = on_a_terminal(*words, "--json")
    assert code == 0 and json.loads(out)
    shown = re.sub(r"tilewise: [^\r\n]* vary [^\r\n]*\r?\n", "", shown)  # a loaded machine's note
    at = [shown.find(step) for step in steps]
    assert -1 not in at and at == sorted(at), shown
    assert shown.endswith(ERASE) and "\n" not in shown
    assert all(len(line) < 80 + len("\x1b[K") for line in shown.split("\r"))


def test_a_message_does_not_stand_behind_a_bar(on_a_terminal):
    conv = "conv_fwd:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=fp32"
    kernel = "gemm_fp32_any_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1@cpu-generic"
    code, out, shown = on_a_terminal("bench", GEMM, conv, "--kernel", kernel, "--arch", "cpu-generic")
    assert code == 3 and GEMM in out and f"{ERASE}tilewise: " in shown, shown
