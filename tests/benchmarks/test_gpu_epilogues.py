# SPDX-License-Identifier: MIT
"""The parts of benchmarks/gpu_epilogues.py that need neither torch nor a GPU: problems, tables, and a run that is stopped."""
import pathlib
import subprocess
import sys

import pytest

import tilewise

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import gpu_epilogues  # noqa: E402

GEMM = "gemm:m=4,n=8,k=2048,dtype=bf16,layout=rcr"
CONV = "conv_fwd:n=2,g=1,c=8,k=6,in=9x7,filter=3x1,stride=2x1,pad=1x0,dtype=bf16,layout=nhwgc"
LISTED = ROOT / "benchmarks/problems/epilogues_gpu.txt"


def result(chain, ours, group="conv", **more):
    return {"problem": GEMM, "family": "odd", "group": group, "chain": chain, "output_bytes": 8_800_000, "status": "ok",
            "kernel": "some_kernel", "error": 0.5, "ours_us": ours, "plain_us": 10.0, "peers_us": {"slow": 40.0, "fast": 20.0},
            **more}


def failure(chain, status):
    facts = {name: result(chain, 1.0)[name] for name in ("problem", "family", "group", "chain", "output_bytes")}
    return {**facts, "status": status, "reason": "no luck"}


def cells(text, first):
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return [row[1:] for row in rows if row[0] == first]


def test_the_listed_problems_are_of_every_group_and_exceed_the_cache():
    cases = gpu_epilogues.parse_cases(LISTED.read_text(encoding="utf-8"))
    groups = [gpu_epilogues.group_of(case) for case in cases]
    assert set(groups) == set(gpu_epilogues.GROUPS) and len({case.text for case in cases}) == len(cases)
    assert sum(group.startswith("gemm") for group in groups) >= 16 and sum(group.startswith("conv") for group in groups) >= 10
    assert all(16 * case.bytes > 128 << 20 for case in cases)


@pytest.mark.parametrize("chain", gpu_epilogues.CHAINS)
def test_the_library_has_kernels_for_every_chain(chain):
    cases = gpu_epilogues.parse_cases(LISTED.read_text(encoding="utf-8"))
    for case in cases[::9]:
        assert tilewise.select(case.text + gpu_epilogues.chain_text(chain), arch="sm_90a").available, case.text


def test_groups_and_outputs():
    gemm, small, conv = (gpu_epilogues.parse_case(text, "odd") for text in (GEMM, GEMM.replace("2048", "2047"), CONV))
    depthwise = gpu_epilogues.parse_case(CONV.replace("g=1,c=8,k=6", "g=8,c=8,k=8"), "odd")
    assert tuple(map(gpu_epilogues.group_of, (gemm, small, conv, depthwise))) == gpu_epilogues.GROUPS
    assert gpu_epilogues.output_bytes(gemm) == 64 and gpu_epilogues.output_bytes(conv) == 2 * 2 * 5 * 7 * 6


@pytest.mark.parametrize("text, said", [
    (GEMM.replace("rcr", "rrr"), "layout=rcr"), (GEMM + ",batch=2", "no batch"), (GEMM.replace("bf16", "fp32"), "dtype=fp32"),
    (CONV.replace("conv_fwd", "conv_bwd_data"), "need conv_fwd"), (GEMM + ",epilogue=bias", "epilogue="),
])
def test_what_cannot_be_compared_is_refused(text, said):
    with pytest.raises(ValueError, match=f"line 2: .*{said}"):
        gpu_epilogues.parse_cases("\n" + text)


def test_a_table_counts_only_what_is_right():
    results = [result("beta", 10.0), result("beta", 14.4), failure("beta", "wrong"), result("beta", 40.0, "conv depthwise"),
               failure("beta", "failed"), result("bias", 99.0)]
    text = gpu_epilogues.chain_table(results, "beta")
    # 8.8 MB take 2 us.
    assert cells(text, "conv") == [["4", "1.20", "1.44", "1.67", "1.39", "1.10", "1", "1"]]
    assert cells(text, "conv depthwise") == [["1", "4.00", "4.00", "0.50", "0.50", "15.00", "0", "0"]]
    assert cells(text, "all")[0][0] == "5" and "gemm" not in text
    assert cells(gpu_epilogues.chain_table(results, "bias"), "all")[0][5] == "-"
    page = gpu_epilogues.markdown(results, {"device": "none"}, "auto")
    assert "### beta" in page and "### bias\n" in page and "### relu" not in page


def test_a_line_names_the_fastest_peer_or_the_reason():
    line = gpu_epilogues.line_of(result("bias+relu", 16.0))
    assert line.split() == ["16.00", "1.60", "20.00", "1.25", "bias+relu", "fast", GEMM, "some_kernel"]
    alone = gpu_epilogues.line_of(result("bias", 16.0, plain_us=None, peers_us={}))
    assert alone.split()[:5] == ["16.00", "-", "-", "-", "bias"]
    assert gpu_epilogues.line_of(failure("bias", "wrong")).split()[0] == "WRONG"


def test_a_fault_of_the_device_ends_the_run_and_keeps_what_was_measured(capsys):
    cases = gpu_epilogues.parse_cases(f"{GEMM}\n{CONV}\n{GEMM}")

    def compare(case, strategy):
        if case.text == CONV:
            raise RuntimeError("an illegal access")
        return [result("plain", 10.0)]

    results = gpu_epilogues.compare_all(cases, gpu_epilogues.read_options([]), {}, compare)
    assert [(one["problem"], one["status"]) for one in results] == [(GEMM, "ok"), (CONV, "failed")]
    assert "an illegal access" in capsys.readouterr().err


def test_the_first_word_of_gpu_gemm_leads_here():
    answer = subprocess.run([sys.executable, str(ROOT / "benchmarks/gpu_gemm.py"), "epilogues", "--only", "no such problem"],
                            capture_output=True, text=True, check=False)
    assert answer.returncode == 2 and answer.stderr.startswith("gpu_epilogues: no problem of")
