# SPDX-License-Identifier: MIT
"""records.csv: what bench, tune and the strategy measure found out, beside the tuning results."""
import csv
import shlex

import pytest

GEMM = "gemm:m=64,n=48,k=32,dtype=fp32,layout=rcr"
POOL = ("--arch", "cpu-generic", "--rule-set", "tiny")
COLUMNS = ["schema", "set", "network", "device", "chip", "arch", "driver", "clock_mhz", "problem", "kernel_name", "kernel_id",
           "kernel_family", "code_digest", "status", "reason", "predicted_us", "time_us", "spread", "samples", "time2_us",
           "max_error", "tflops", "gbps", "roof", "reference_us", "started", "repro"]
MEASURED = {"clock_mhz", "time_us", "spread", "samples", "time2_us", "tflops", "gbps", "roof", "started"}


@pytest.fixture
def records(cached):
    """records() -> those of the shared cache that came since this test began or the last call."""
    path = cached.folder / "records.csv"

    def read():
        if not path.exists():
            return []
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            assert rows.fieldnames == COLUMNS
            return list(rows)

    seen = len(read())

    def fresh():
        nonlocal seen
        rows = read()
        rows, seen = rows[seen:], len(rows)
        return rows

    return fresh


def test_bench_records_what_it_shows(ask_cached, records):
    shown = ask_cached("bench", GEMM, "--all", *POOL)
    assert shown["notes"] == []
    rows = records()
    assert [row["kernel_name"] for row in rows] == [row["kernel"] for row in shown["results"]]
    for row, result in zip(rows, shown["results"]):
        assert row["schema"] == "2" and row["device"] == shown["device"] and row["problem"] == GEMM
        assert row["status"] == "ok" and not row["reason"] and len(row["code_digest"]) == 64 and row["kernel_family"]
        for column, key in (("time_us", "us"), ("spread", "spread"), ("tflops", "tflops"), ("gbps", "gbps"),
                            ("roof", "roof"), ("predicted_us", "predicted_us")):
            assert float(row[column]) == pytest.approx(result[key])
        assert int(row["samples"]) > 0


def test_a_record_can_be_repeated(ask_cached, records):
    ask_cached("bench", GEMM, *POOL)
    (first,) = records()
    program, *words = shlex.split(first["repro"])
    assert program == "tilewise"
    ask_cached(*words)
    (again,) = records()
    same = set(COLUMNS) - MEASURED
    assert {key: first[key] for key in same} == {key: again[key] for key in same}


def test_tune_and_measure_record_more_than_the_winner(ask_cached, records):
    problem = "gemm:m=63,n=49,k=31,dtype=fp32,layout=rcr"
    winner = ask_cached("tune", problem, "--top", "2", *POOL)["results"][0]["kernel"]
    rows = records()
    assert len(rows) == 2 and rows[0]["kernel_name"] == winner
    kernel = ask_cached("run", problem, "--strategy", "measure", "--top", "2", "--again", *POOL)["kernel"]
    rows = records()
    assert len(rows) == 2 and kernel in [row["kernel_name"] for row in rows]
    ask_cached("run", GEMM, "--strategy", "rules", *POOL)
    assert records() == []


def test_failures_are_records(run, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path), "TILEWISE_CXX": "/nonexistent/c++"}
    assert run("bench", GEMM, "--all", *POOL, env=env).code == 1
    with open(tmp_path / "records.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows and all(row["status"] == "build_failed" and "TILEWISE_CXX" in row["reason"] for row in rows)
    assert all(row["time_us"] == row["tflops"] == "" and row["samples"] == "0" for row in rows)


def test_a_store_that_fails_fails_no_measurement(cached, tmp_path):
    (cached.folder / "records.csv").rename(tmp_path / "records.csv")
    (cached.folder / "records.csv").symlink_to(tmp_path / "records.csv")
    try:
        before = (tmp_path / "records.csv").read_text()
        answer = cached("bench", GEMM, *POOL, "--json")
        assert answer.code == 0 and answer.json["results"], answer
        (note,) = answer.json["notes"]
        assert note["kind"] == "records" and "is a link" in note["message"] and note["message"] in answer.err, answer
        assert (tmp_path / "records.csv").read_text() == before
        doctor = cached("doctor", "--json")
        (found,) = [item for item in doctor.json["checks"] if item["check"] == "records"]
        assert doctor.code == 1 and not found["ok"] and "is a link" in found["found"]
    finally:
        (cached.folder / "records.csv").unlink()
        (tmp_path / "records.csv").rename(cached.folder / "records.csv")


def test_how_many_there_are_and_how_many_may_be(cached, ask_cached, records):
    ask_cached("bench", GEMM, *POOL)
    path, kept = cached.folder / "records.csv", ask_cached("cache", "stats")["records"]
    assert kept == {"path": str(path), "records": kept["records"], "bytes": path.stat().st_size, "max_bytes": 64 << 20}
    assert kept["records"] >= len(records()) == 1
    assert f"{path}: {kept['records']} records" in cached("cache", "stats").out
    (found,) = [item for item in ask_cached("doctor")["checks"] if item["check"] == "records"]
    assert found["found"].startswith(f"{path}: {kept['records']} records, {kept['bytes']} bytes of at most {64 << 20}")
    ask_cached("bench", GEMM, *POOL, env={"TILEWISE_RECORDS_MAX": "0"})
    assert records() == []
    limit = kept["bytes"] - 1
    ask_cached("bench", GEMM, *POOL, env={"TILEWISE_RECORDS_MAX": str(limit)})
    assert path.stat().st_size <= limit
    assert ask_cached("cache", "stats")["records"]["records"] < kept["records"]
