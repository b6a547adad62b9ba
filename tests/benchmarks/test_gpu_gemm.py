# SPDX-License-Identifier: MIT
"""The parts of benchmarks/gpu_gemm.py that need neither torch nor a GPU: problems, tables, a child that dies or hangs."""
import json
import pathlib
import sys

import pytest

import tilewise

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import gpu_child  # noqa: E402
import gpu_comparison  # noqa: E402
import gpu_gemm  # noqa: E402
import gpu_plot  # noqa: E402
import gpu_problems  # noqa: E402
import gpu_report  # noqa: E402

TEXT = "gemm:m=2,n=3,k=5,dtype=bf16,layout=crc"


def result(ours, cublas, cublaslt, **more):
    return {"problem": TEXT, "family": "odd", "dtype": "bf16", "status": "ok", "kernel": "some_kernel", "ours_us": ours,
            "peers_us": {"cublas": cublas, "cublaslt": cublaslt}, "model_us": 2 * ours, "tflops": 1.0, "roof": None, **more}


FAILURE = {"problem": TEXT, "family": "odd", "dtype": "bf16", "status": "failed", "reason": "a | b"}


# ---- problems --------------------------------------------------------------------------------------------------------


def test_a_case_and_its_shapes():
    case, = gpu_problems.parse_cases(f"# a comment\n\n  {TEXT}   # odd\n")
    assert (case.text, case.family, case.dtype, case.batch) == (TEXT, "odd", "bf16", 1)
    assert [case.stored_shape(x) for x in "abc"] == [(5, 2), (5, 3), (3, 2)]
    assert case.flops == 60 and case.bytes == 2 * (10 + 15 + 6)
    batched = gpu_problems.parse_case(TEXT + ",batch=4")
    assert batched.stored_shape("a") == (4, 5, 2) and batched.flops == 240 and batched.family == gpu_problems.NO_FAMILY


@pytest.mark.parametrize("text, said", [
    ("conv_fwd:n=1", "gemm"), (TEXT.replace(",layout=crc", ""), "layout"), (TEXT + ",epilogue=gelu", "epilogue"),
    (TEXT.replace("m=2", "m=0"), "m=0"), (TEXT.replace("bf16", "bf8"), "bf8"), (TEXT.replace("crc", "nn"), "layout=nn"),
    (TEXT + ",math=fast", "math=fast"),
])
def test_what_cannot_be_compared_is_refused(text, said):
    with pytest.raises(ValueError, match=f"line 2: .*{said}"):
        gpu_problems.parse_cases("\n" + text)


def test_the_listed_problems_can_be_compared_and_the_library_has_kernels_for_them():
    cases = gpu_problems.parse_cases((ROOT / "benchmarks/problems/gemm_gpu.txt").read_text())
    assert len({case.text for case in cases}) == len(cases) > 50
    assert {case.dtype for case in cases} == set(gpu_problems.ELEMENT_BYTES)
    for case in cases[::8]:
        assert tilewise.select(case.text, arch="sm_90a").available, case.text


def test_choosing_cases():
    cases = gpu_problems.parse_cases(f"{TEXT} # one\n{TEXT.replace('m=2', 'm=7')} # two\n{TEXT} # two")
    assert gpu_problems.choose_cases(cases, None, None) == cases
    assert gpu_problems.choose_cases(cases, "^two", None) == cases[1:]
    assert gpu_problems.choose_cases(cases, "m=2,", 1) == cases[:1]


def test_the_roof_is_the_larger_of_arithmetic_and_memory():
    peaks = gpu_problems.read_peaks(9, 0)
    large, thin = (gpu_problems.parse_case(f"gemm:m={m},n=4096,k=4096,dtype=bf16,layout=rcr") for m in (4096, 1))
    assert peaks.roof_us(large) == pytest.approx(2 * 4096**3 / peaks.tflops["bf16"] / 1e6)
    assert peaks.roof_us(thin) == pytest.approx(thin.bytes / peaks.memory_gbps / 1e3)
    assert gpu_problems.read_peaks(1, 0).roof_us(large) == 0


# ---- what is shown ---------------------------------------------------------------------------------------------------


def test_geomean():
    assert gpu_report.geomean([]) is None
    assert gpu_report.geomean([0.5, 2.0]) == pytest.approx(1)
    assert gpu_report.geomean([1e-300] * 3) == pytest.approx(1e-300)  # the product alone would be 0


def test_a_ratio_is_to_the_fastest_peer():
    assert gpu_report.ratio_to(result(2.0, 8.0, 4.0)) == 2
    assert gpu_report.ratio_to(result(2.0, 8.0, 4.0), "cublas") == 4
    assert gpu_report.ratio_to(result(2.0, 8.0, None)) == 4
    assert gpu_report.ratio_to(FAILURE) is None


def test_the_share_of_the_models_choice():
    assert gpu_report.model_share(result(2.0, 8.0, 4.0, model_us=2.5)) == 0.8
    assert gpu_report.model_share(FAILURE) is None


def cells(text, first):
    row, = (line for line in text.splitlines() if line.startswith(first))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_the_summary_counts_what_is_not_right_and_leaves_it_out_of_the_means():
    wrong = {**FAILURE, "status": "wrong"}
    results = [result(1, 4, 2), result(1, 1, 0.5, family="squares"), FAILURE, wrong, wrong]
    text = gpu_report.summary_table(results)
    assert cells(text, "| bf16 | odd") == ["bf16", "odd", "4", "4.00", "2.00", "2.00", "2.00", "2", "1", "50"]
    assert cells(text, "| bf16 | all") == ["bf16", "all", "5", "2.00", "1.00", "1.00", "0.50", "2", "1", "50"]
    assert len({len(line) for line in text.splitlines()}) == 1  # aligned
    assert cells(gpu_report.summary_table([FAILURE]), "| bf16 | odd")[3:7] == ["-"] * 4


def test_lines_and_markdown():
    assert gpu_report.line_of(result(2.0, 3.0, None, roof=0.5)).split()[:5] == ["1.50", "2.00", "3.00", "1.0", "50"]
    assert "FAILED" in gpu_report.line_of(FAILURE) and "a | b" in gpu_report.line_of(FAILURE)
    text = gpu_report.markdown([result(2.0, 3.0, None), FAILURE], {"date": "2026-01-02", "driver": "1.2"}, "rules")
    assert "date 2026-01-02, driver 1.2" in text and "`rules`" in text and "a / b" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables) and len({line.count("|") for line in tables}) == 2


def test_options():
    options = gpu_gemm.read_options([])
    assert options.strategy == "measure" and options.problems.is_file()
    for bad in (["--only", "("], ["--strategy", "luck"]):
        with pytest.raises(SystemExit):
            gpu_gemm.read_options(bad)


def test_the_plot_has_a_row_for_each_family_and_a_dot_for_each_result():
    results = [result(1, 4, 2), result(1, 1, 0.5, family="squares"), result(1, 100, 100, dtype="fp32"), FAILURE]
    rows = gpu_plot.rows_of(results)
    assert [name for name, _ in rows] == ["bf16 odd", "bf16 squares", "bf16 all", "fp32 odd"]
    text = gpu_plot.draw(rows, "a title")
    assert text.count("<circle") == 5 and text == gpu_plot.draw(rows, "a title")
    assert gpu_plot.place(1e9) == gpu_plot.place(gpu_plot.MOST) == gpu_plot.WIDTH - gpu_plot.RIGHT


# ---- the child -------------------------------------------------------------------------------------------------------

SERVANT = r"""
import json, os, signal, sys, time
print('{"ready": true}', flush=True)
for line in sys.stdin:
    word = json.loads(line)["problem"].split(",")[0]
    if word == "gemm:m=66": os.kill(os.getpid(), signal.SIGKILL)
    if word == "gemm:m=77": time.sleep(60)
    if word == "gemm:m=88": sys.exit(3)
    print(json.dumps({"answer": {"pid": os.getpid(), "status": "ok"}, "last": word == "gemm:m=99"}), flush=True)
"""


@pytest.fixture
def child():
    with gpu_child.Child([sys.executable, "-c", SERVANT]) as made:
        yield made


def test_a_fault_ends_one_problem_and_not_the_run(child):
    options = gpu_gemm.read_options(["--timeout", "5"])
    fast = gpu_gemm.read_options(["--timeout", "0.5"])

    def compare(m, options=options):
        return gpu_comparison.compare_one(child, gpu_problems.parse_case(TEXT.replace("m=2", f"m={m}")), options)

    first = compare(1)
    assert compare(2) == first  # the same process
    for m, chosen, said in ((66, options, "SIGKILL"), (77, fast, "0.5 s"), (88, options, "ended with 3")):
        failed = compare(m, chosen)
        assert failed["status"] == "failed" and said in failed["reason"] and f"m={m}," in failed["problem"]
        assert compare(1)["status"] == "ok"
    before = compare(99)  # its last answer, after which the next one must not be lost
    after = compare(1)
    assert before["status"] == after["status"] == "ok" and before["pid"] != after["pid"]


def test_results_are_written_after_each_problem(child, tmp_path, capsys):
    path = tmp_path / "results.json"
    options = gpu_gemm.read_options(["--json", str(path), "--timeout", "5"])
    case = gpu_problems.parse_case(TEXT.replace("m=2", "m=66"))
    results = gpu_comparison.compare_all(child, [case], options, {"device": "none"})
    written = json.loads(path.read_text())
    assert written["results"] == results and written["environment"] == {"device": "none"}
    assert "FAILED" in capsys.readouterr().out


def test_a_child_that_cannot_start_is_told():
    with gpu_child.Child([sys.executable, "-c", "raise SystemExit(9)"]) as broken:
        with pytest.raises(gpu_child.ChildDied, match="ended with 9"):
            broken.start(20)
