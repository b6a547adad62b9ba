# SPDX-License-Identifier: MIT
"""tilewise fit: the prices of a chip from a table of times."""
import csv
import json

import pytest

HEADER = ["schema", "set", "network", "device", "chip", "arch", "driver", "clock_mhz", "problem", "kernel_name", "kernel_id",
          "kernel_family", "code_digest", "status", "reason", "predicted_us", "time_us", "spread", "samples", "time2_us",
          "max_error", "tflops", "gbps", "roof", "reference_us", "started", "repro"]
PROBLEMS = [f"gemm:m={m},n={n},k={k},dtype=bf16,layout=rcr" for m, n, k in
            ((128, 256, 512), (4096, 4096, 4096), (64, 8192, 1024), (2048, 512, 8192))]


def row(problem, kernel, time_us, status="ok"):
    cells = {"schema": 2, "device": "h200", "problem": problem, "kernel_name": kernel, "status": status, "time_us": time_us,
             "samples": 1}
    return [cells.get(column, "") for column in HEADER]


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([HEADER, *rows])
    return path


@pytest.fixture
def records(ask, tmp_path):
    """Predicted times, each of them a fifth longer, and what is no time."""
    rows = []
    for problem in PROBLEMS:
        for candidate in ask("select", problem, "--arch", "sm_90a", "--strategy", "rules")["candidates"][:20]:
            rows.append(row(problem, candidate["name"], 1.2 * candidate["predicted_us"]))
    rows += [row(PROBLEMS[0], "none", "", "build_failed"), row(PROBLEMS[0], "none", 0), row("gemm", "none", 1)]
    return write(tmp_path / "times.csv", rows)


def test_predictions_come_closer(run, ask, records, tmp_path, root):
    out = tmp_path / "fitted.json"
    answer = ask("fit", records, "--chip", "h200", "--out", out)
    assert answer["left_out"] == 3 and answer["fitted"]
    assert all(family["error_after"] < 0.2 * family["error_before"] for family in answer["families"]), answer["families"]
    fitted = json.loads(out.read_text())
    assert answer["chip"] == fitted
    before = json.loads((root / "chips/h200.json").read_text())
    assert {group: set(prices) for group, prices in fitted["prices"].items()} == {
        group: set(prices) for group, prices in before["prices"].items()}
    for name in answer["unused"]:
        group, price = name.split(".")
        assert fitted["prices"][group][price] == before["prices"][group][price], name
    assert ask("fit", records, "--chip", out)["families"][0]["error_before"] < 0.05  # a file is a chip as well


def test_the_chip_goes_to_standard_output_and_the_report_beside_it(run, records):
    answer = run("fit", records, "--chip", "h200", "--family", "wgmma_gemm")
    assert answer.code == 0 and json.loads(answer.out)["name"] == "h200", answer
    assert "wgmma_gemm" in answer.err and "mma_conv" not in answer.err.split("prices fitted")[0], answer.err
    assert "3 records left out" not in answer.err and "gemv.pass_us" in answer.err


@pytest.mark.parametrize("words, message", [
    ((), "--chip"),
    (("--chip", "h20"), "did you mean 'h200'?"),
    (("--chip", "h200", "--family", "wgmma"), "unknown family 'wgmma'"),
    (("--chip", "zen4"), "none of"),
])
def test_what_cannot_be_fitted(run, records, words, message):
    answer = run("fit", records, *words)
    assert answer.code == 2 and message in answer.err and not answer.out, answer


def test_tables_that_are_none(run, tmp_path):
    for text, message in (("", "header"), ("a,b\n1,2\n", "column")):
        path = tmp_path / "bad.csv"
        path.write_text(text)
        answer = run("fit", path, "--chip", "h200")
        assert answer.code == 2 and message in answer.err, answer
    assert run("fit", tmp_path / "nowhere.csv", "--chip", "h200").code == 2
