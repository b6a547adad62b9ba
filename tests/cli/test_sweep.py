# SPDX-License-Identifier: MIT
"""tilewise sweep: every kernel on every problem into a file of records, whatever happens meanwhile."""
import csv
import json
import os
import random
import resource
import signal
import subprocess
import time

import pytest

POOL = ("--arch", "cpu-generic", "--rule-set", "tiny", "--threads", "1")
COLUMNS = ["schema", "set", "network", "device", "chip", "arch", "driver", "clock_mhz", "problem", "kernel_name", "kernel_id",
           "kernel_family", "code_digest", "status", "reason", "predicted_us", "time_us", "spread", "samples", "time2_us",
           "max_error", "tflops", "gbps", "roof", "reference_us", "started", "repro"]
PROBLEMS = [f"gemm:m={8 + i},n={24 + 3 * i},k={16 + i},dtype=fp32,layout=rcr" for i in range(20)]


def environment(**changes):
    return {**{key: value for key, value in os.environ.items() if not key.startswith("TILEWISE_")}, **changes}


def write_problems(path, problems):
    path.write_text("".join(f"{problem}  # network {i % 3}\n" for i, problem in enumerate(problems)))
    return str(path)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        assert rows.fieldnames == COLUMNS
        return list(rows)


def keys(*paths):
    """Each record's key and status; a key that is there twice is seen."""
    return sorted((row["problem"], row["kernel_name"], row["status"]) for path in paths for row in read(path))


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    return write_problems(tmp_path_factory.mktemp("sweep") / "twenty.txt", PROBLEMS)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return write_problems(tmp_path_factory.mktemp("sweep") / "few.txt", PROBLEMS[:3])


@pytest.fixture(scope="module")
def sweep(cached):
    """sweep(out, *words) -> the Answer of a sweep over the tiny kernels of this CPU."""
    return lambda out, *words, **options: cached("sweep", "--out", str(out), *POOL, *words, **options)


@pytest.fixture(scope="module")
def undisturbed(sweep, problems, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "undisturbed.csv"
    answer = sweep(out, "--problems", problems, "--json")
    assert answer.code == 0, answer
    out.with_suffix(".json").write_text(answer.out)
    return out


@pytest.fixture
def kernels(ask):
    return [one["name"] for one in ask("select", PROBLEMS[0], "--arch", "cpu-generic", "--rule-set", "tiny")["candidates"]]


def test_every_kernel_of_every_problem_has_its_record(undisturbed, ask):
    rows = read(undisturbed)
    assert {row["problem"] for row in rows} == set(PROBLEMS)
    candidates = ask("select", PROBLEMS[7], "--arch", "cpu-generic", "--rule-set", "tiny")["candidates"]
    mine = [row for row in rows if row["problem"] == PROBLEMS[7]]
    assert sorted(row["kernel_name"] for row in mine) == sorted(one["name"] for one in candidates)
    assert len(set(keys(undisturbed))) == len(rows)
    summary = json.loads(undisturbed.with_suffix(".json").read_text())
    assert summary["records"]["ok"] == len(rows) and summary["problems"] == 20 and summary["left_out"] == 0


def test_a_record_says_all_about_a_measurement(undisturbed):
    rows = read(undisturbed)
    for row in rows:
        assert row["schema"] == "2" and row["status"] == "ok" and row["set"].startswith("twenty@") and row["reason"] == ""
        assert row["network"].startswith("network ") and row["arch"] == "cpu-generic" and row["kernel_family"]
        assert float(row["time_us"]) > 0 and float(row["predicted_us"]) > 0 and float(row["max_error"]) < 1e-4
        assert len(row["code_digest"]) == 64 and row["started"].endswith("Z") and row["repro"].startswith("tilewise bench")
    for problem in PROBLEMS:
        times = {row["kernel_name"]: row for row in rows if row["problem"] == problem}
        best = min(times.values(), key=lambda row: float(row["time_us"]))
        assert best["time2_us"] and int(best["samples"]) == 3
        for row in times.values():
            assert bool(row["time2_us"]) == (float(row["time_us"]) <= 1.25 * float(best["time_us"]) * (1 + 1e-9))
    assert any(row["reference_us"] for row in rows)


def test_killed_three_times_and_resumed_it_has_the_same_records(undisturbed, cached, binary, problems, tmp_path):
    out, draw = tmp_path / "killed.csv", random.Random(7)
    words = [binary, "sweep", "--problems", problems, "--out", str(out), *POOL, "--resume"]
    env = environment(TILEWISE_CACHE_DIR=str(cached.folder))
    size, ends = 0, []
    for _ in range(3):
        size += draw.uniform(0.1, 0.25) * undisturbed.stat().st_size
        child = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
        while child.poll() is None and not (out.exists() and out.stat().st_size > size):
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        ends.append(child.wait())
        with open(out, "ab") as file:
            file.write(b"2,torn")  # as if the kill had come in the middle of a write
    assert -signal.SIGKILL in ends
    assert subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert keys(out) == keys(undisturbed)


def test_shards_have_each_record_once(undisturbed, sweep, problems, tmp_path):
    shards = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for number, out in enumerate(shards, start=1):
        assert sweep(out, "--problems", problems, "--shard", f"{number}/2").code == 0
    assert keys(*shards) == keys(undisturbed)
    assert all(len(read(out)) < len(read(undisturbed)) for out in shards)


def test_a_crash_costs_its_own_record(sweep, few, kernels, tmp_path):
    out = tmp_path / "crash.csv"
    assert sweep(out, "--problems", few, env={"TILEWISE_SWEEP_FAULT": f"crash:{kernels[1]}"}).code == 0
    for row in read(out):
        assert row["status"] == ("crash" if row["kernel_name"] == kernels[1] else "ok"), row
        assert ("signal 11" in row["reason"]) == (row["status"] == "crash"), row
    assert len(read(out)) == 3 * len(kernels)


def test_a_hang_costs_its_own_record(sweep, few, kernels, tmp_path):
    out = tmp_path / "hang.csv"
    words = ("--problems", few, "--timeout", "1", "--shard", "1/3")
    assert sweep(out, *words, env={"TILEWISE_SWEEP_FAULT": f"hang:{kernels[0]}"}).code == 0
    rows = read(out)
    assert [row["status"] for row in rows].count("timeout") == 1 and len(rows) == len(kernels)
    assert "no answer within 1 s" in next(row["reason"] for row in rows if row["status"] == "timeout")


def test_after_three_crashes_the_rest_of_a_problem_is_skipped(sweep, few, kernels, tmp_path):
    out = tmp_path / "crashes.csv"
    assert sweep(out, "--problems", few, env={"TILEWISE_SWEEP_FAULT": f"crash:{PROBLEMS[1]}"}).code == 0
    statuses = [row["status"] for row in read(out) if row["problem"] == PROBLEMS[1]]
    assert statuses.count("crash") == 3 and statuses.count("skipped") == len(kernels) - 3
    assert {row["status"] for row in read(out) if row["problem"] != PROBLEMS[1]} == {"ok"}
    assert all("crashed or hung" in row["reason"] for row in read(out) if row["status"] == "skipped")


@pytest.mark.parametrize("fault, status, told", [("wrong", "wrong", "wrong"), ("clock", "skipped", "clock")])
def test_a_wrong_result_or_clock_is_a_record(sweep, few, kernels, tmp_path, fault, status, told):
    out = tmp_path / "out.csv"
    words = ("--problems", few, "--shard", "2/3")
    assert sweep(out, *words, env={"TILEWISE_SWEEP_FAULT": f"{fault}:{kernels[2]}"}).code == 0
    for row in read(out):
        assert row["status"] == (status if row["kernel_name"] == kernels[2] else "ok"), row
        if row["status"] != "ok":
            assert told in row["reason"] and row["max_error"] and not row["time_us"], row


def test_a_reference_without_memory_does_not_end_the_worker(run, kernels):
    large = f"gemm:m=1,n=1,k={2**48},dtype=fp32,layout=rcr"  # beyond what a process can address
    requests = [json.dumps({"reference": problem, "kernel": kernels[0]}) + "\n" for problem in (large, PROBLEMS[0])]
    answer = run("sweep-worker", "--arch", "cpu-generic", "--threads", "1", stdin="".join(requests))
    assert answer.code == 0, answer
    _, first, second = map(json.loads, answer.out.splitlines())
    assert first == {"reference_us": None} and second["reference_us"] > 0


def test_a_compiler_that_fails_is_a_record(run, few, tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exec c++ --version\nexit 1\n")
    compiler.chmod(0o755)
    out = tmp_path / "out.csv"
    answer = run("sweep", "--problems", few, "--out", str(out), *POOL, "--shard", "1/3",
                 env={"TILEWISE_CACHE_DIR": str(tmp_path / "cache"), "TILEWISE_CXX": str(compiler)})
    assert answer.code == 0, answer
    assert {row["status"] for row in read(out)} == {"build_failed"} and all(row["reason"] for row in read(out))


def test_a_full_disk_is_an_error_that_loses_nothing(sweep, undisturbed, problems, tmp_path):
    out = tmp_path / "full.csv"
    answer = sweep(out, "--problems", problems, "--shard", "1/10",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY)))
    assert answer.code == 1 and "cannot write" in answer.err and "--resume" in answer.err, answer
    whole = read(out)
    assert whole and out.read_bytes().endswith(b"\n") and out.stat().st_size <= 3000
    assert sweep(out, "--problems", problems, "--shard", "1/10", "--resume").code == 0
    assert read(out)[:len(whole)] == whole and set(keys(out)) < set(keys(undisturbed))


def test_a_budget_ends_in_time_and_says_what_it_left_out(sweep, undisturbed, problems, tmp_path):
    out = tmp_path / "budget.csv"
    begin = time.monotonic()
    answer = sweep(out, "--problems", problems, "--budget", "0.1s", "--json")
    assert answer.code == 0 and time.monotonic() - begin < 10, answer
    left = [row for row in read(out) if row["status"] == "skipped"]
    assert answer.json["left_out"] == len(left) > 0 and all("budget of 0.1" in row["reason"] for row in left)
    assert [key[:2] for key in keys(out)] == [key[:2] for key in keys(undisturbed)]
    assert sweep(out, "--problems", problems, "--resume", "--shard", "1/1").code == 0
    assert keys(out) == keys(undisturbed)


def test_a_budget_that_is_over_at_once_counts_each_problem_once(cached, tmp_path):
    problems, out = tmp_path / "none.txt", tmp_path / "out.csv"
    write_problems(problems, [f"gemm:m={m},n=8,k=8,dtype=fp8,layout=ccr" for m in range(8, 20)])  # no tiny kernel runs these
    answer = cached("sweep", "--problems", str(problems), "--out", str(out), "--device", "emulated:sm_90a", "--rule-set", "tiny",
                    "--budget", "0.001s", "--json")
    assert answer.code == 0 and answer.json["without_kernels"] == 12 and read(out) == [], answer


def test_configs_name_the_kernels_and_those_that_cannot_run_are_rejected(cached, few, kernels, tmp_path):
    config, out = tmp_path / "configs.json", tmp_path / "out.csv"
    other = "gemm_bf16_rcr_compv3_default_intrawave_64x64x32_2x2x1_16x8x16@sm_90a"
    config.write_text(json.dumps([kernels[0], other]))
    answer = cached("sweep", "--problems", few, "--out", str(out), "--config", str(config), "--arch", "cpu-generic",
                    "--threads", "1")
    assert answer.code == 0, answer
    statuses = {(row["kernel_name"], row["status"]) for row in read(out)}
    assert statuses == {(kernels[0], "ok"), (other, "rejected")}
    assert all(row["reason"].startswith("rule arch") for row in read(out) if row["status"] == "rejected")


def test_the_bar_has_a_rate_and_the_time_left(binary, cached, few, tmp_path, run_on_a_terminal):
    env = {**os.environ, "TILEWISE_CACHE_DIR": str(cached.folder)}
    words = [binary, "sweep", "--problems", few, "--out", str(tmp_path / "out.csv"), *POOL, "--json"]
    code, out, shown = run_on_a_terminal(words, env, "stderr")
    assert code == 0 and json.loads(out)["problems"] == 3
    assert "0 of 3" in shown and "/s" in shown and " left" in shown and shown.endswith("\r\x1b[K")


@pytest.mark.parametrize("words, told", [
    (["--problems", "no_such_set"], ["no_such_set", "gemm_training"]),
    (["--problems", "{empty}"], ["empty.txt", "no problem"]),
    (["--problems", "{bad}"], ["bad.txt:2: ", "oops"]),
    (["--problems", "{few}", "--shard", "3/2"], ["--shard", "3/2", "I from 1 to N"]),
    (["--problems", "{few}", "--budget", "0"], ["--budget", "above 0", "25m"]),
    (["--problems", "{few}", "--budget", "25x"], ["--budget", "25x"]),
    (["--problems", "{few}", "--kernels", "some"], ["some", "sample"]),
    (["--problems", "{few}", "--config", "{config}"], ["config.json", "colour"]),
    (["--problems", "{few}", "--config", "{config}", "--kernels", "sample"], ["--config", "--kernels"]),
    (["--problems", "{few}", "--out", "{nowhere}"], ["nowhere", "no folder"]),
    (["--problems", "{few}", "--out", "{there}"], ["there.csv", "--resume"]),
    (["--problems", "{few}", "--out", "{other}", "--resume"], ["other.csv", "another device", "cpu-generic"]),
    (["--problems", "{few}", "--out", "{old}", "--resume"], ["old.csv", "schema", "have 1", "is 2"]),
    (["--problems", "{few}", "--out", "{list}", "--resume"], ["list.csv", "problem list", "few@"]),
    (["--problems", "{few}", "--out", "{diary}", "--resume"], ["diary.csv", "no records"]),
    ([], ["--problems"]),
    (["--problems", "{few}", "--out", ""], ["--out"]),
])
def test_what_makes_no_sense_is_refused(cached, few, undisturbed, tmp_path, words, told):
    files = {"few": few, "empty": tmp_path / "empty.txt", "bad": tmp_path / "bad.txt", "config": tmp_path / "config.json",
             "nowhere": tmp_path / "nowhere" / "out.csv", "there": tmp_path / "there.csv", "other": tmp_path / "other.csv",
             "old": tmp_path / "old.csv", "list": tmp_path / "list.csv", "diary": tmp_path / "diary.csv"}
    files["empty"].write_text("# nothing\n\n")
    files["bad"].write_text(f"{PROBLEMS[0]}\ngemm:m=oops\n")
    files["config"].write_text('{"colour": ["red"]}')
    files["there"].write_text("")
    lines = undisturbed.read_text().splitlines(keepends=True)
    row = read(undisturbed)[0]
    files["list"].write_text(lines[0] + lines[1])
    files["other"].write_text((lines[0] + lines[1]).replace(row["device"], "another device"))
    files["old"].write_text("schema,device\n1,x\n")
    files["diary"].write_text("Dear diary")
    given = [word.format(**files) for word in words]
    out = [] if "--out" in given else ["--out", str(tmp_path / "new.csv")]
    answer = cached("sweep", "--arch", "cpu-generic", "--threads", "1", *out, *given)
    assert answer.code in (2, 3) and all(text in answer.err for text in told), answer
    assert not (tmp_path / "new.csv").exists() and files["diary"].read_text() == "Dear diary"


def test_two_sweeps_do_not_share_a_device(cached, binary, problems, few, tmp_path):
    env = environment(TILEWISE_CACHE_DIR=str(cached.folder))
    first = subprocess.Popen([binary, "sweep", "--problems", problems, "--out", str(tmp_path / "first.csv"), *POOL], env=env,
                             stdout=subprocess.DEVNULL)
    try:
        while not (tmp_path / "first.csv").exists() and first.poll() is None:
            time.sleep(0.02)
        answer = cached("sweep", "--problems", few, "--out", str(tmp_path / "second.csv"), *POOL)
        assert answer.code == 5 and f"process {first.pid}" in answer.err and "first.csv" in answer.err, answer
    finally:
        first.kill()
        first.wait()
