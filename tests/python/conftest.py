# SPDX-License-Identifier: MIT
"""Tests see the chosen kernel, not a built-in one that serves while it compiles; test_warm.py tests that.
Tests of records share what a sweep could have written."""
import csv
import os
import random

import pytest

os.environ.setdefault("TILEWISE_BACKGROUND", "0")

COLUMNS = ("schema set network device chip arch driver clock_mhz problem kernel_name kernel_id kernel_family code_digest status reason "
           "predicted_us time_us spread samples time2_us max_error tflops gbps roof reference_us started repro").split()
FAILURES = {"build_failed": "error: too many registers, \"quoted\", in\ntwo lines", "timeout": "30 s", "crash": "an illegal access",
            "wrong": "element 17: have nan; need 0.5", "skipped": "three faults in this problem"}


def swept(problem, arch="sm_90a", kernels=6, seed=0, device="NVIDIA H200; sm_90a; 570", rule_set="tests", **changes):
    """Records as a sweep writes them of a problem: kernels that the library has, with times near those it predicts."""
    import tilewise  # the tests of other modules decide when it is loaded

    draw = random.Random(f"{problem}{seed}")
    facts = tilewise.Problem(problem)
    for place, candidate in enumerate(tilewise.select(problem, arch=arch, rule_set=rule_set, strategy="rules").candidates[:kernels]):
        us = candidate.predicted_us * draw.lognormvariate(0, 0.2)
        failed = place > 0 and draw.random() < 0.1
        status = draw.choice(list(FAILURES)) if failed else "ok"
        kernel = tilewise.find_kernel(candidate.name)
        yield {"schema": 2, "set": "gemm_test@0123456789abcdef", "network": "Falcon-40B", "device": device, "chip": "h200", "arch": arch, "driver": "570",
               "clock_mhz": 1980, "problem": facts.text, "kernel_name": kernel.name, "kernel_id": kernel.id,
               "kernel_family": kernel.family, "code_digest": "" if status == "build_failed" else f"d{kernel.id}", "status": status,
               "reason": FAILURES.get(status, ""), "predicted_us": candidate.predicted_us, "time_us": "" if failed else us,
               "spread": "" if failed else 0.004 * draw.random(), "samples": 0 if failed else 3,
               "time2_us": "" if failed else us * draw.lognormvariate(0, 0.005), "max_error": "" if failed else 0.3 * draw.random(),
               "tflops": "" if failed else facts.flops / us / 1e6, "gbps": "" if failed else facts.bytes / us / 1e3,
               "roof": "" if failed else facts.bytes / 4.8e6 / us, "reference_us": 12.5, "started": f"2026-11-18T16:{seed:02d}:{place % 60:02d}Z",
               "repro": f"tilewise bench {facts.text} --kernel {kernel.name} --device cuda:0", **changes}


@pytest.fixture(scope="session")
def write_records():
    """write_records(path, records) writes a CSV file as a sweep does, and returns the path; write_records.swept(problem) -> records."""

    def write(path, records):
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(records)
        return path

    write.swept = lambda *arguments, **options: list(swept(*arguments, **options))
    return write
