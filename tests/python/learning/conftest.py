# SPDX-License-Identifier: MIT
"""Measurements that have something to learn: 2,000 of 100 products, by a rule that the analytic model does not know."""
import functools
import random

import pytest

import tilewise
from tilewise import records

KERNELS = 20


@functools.cache
def problems(count=100, seed=5):
    draw = random.Random(seed)
    return [f"gemm:m={8 * round(2 ** draw.uniform(1, 9))},n={8 * round(2 ** draw.uniform(3, 9))},k={8 * round(2 ** draw.uniform(3, 9))},"
            f"dtype=bf16,layout={draw.choice(['rcr', 'rrr'])}" for _ in range(count)]


def truth(row):
    """What a kernel takes: the tile's width, which the analytic model gets wrong here."""
    width = int(tilewise.KernelConfig(row["kernel_name"]).values["tile"].split("x")[1])
    return row["predicted_us"] * (1 + width / 256)


def row_of(write_records, problem, a_set="gemm_training@0123456789abcdef", kernels=KERNELS, **changes):
    draw = random.Random(problem)
    network = draw.choice(["net-a", "net-b"])
    for row in write_records.swept(problem, kernels=kernels, rule_set="default", set=a_set, network=network, **changes):
        us = truth(row) * draw.lognormvariate(0, 0.01)
        if row["status"] != "ok" and draw.random() < 0.9:  # fewer failures, which nothing foretells
            row |= {"status": "ok", "reason": ""}
        yield row if row["status"] != "ok" else row | {"time_us": us, "time2_us": us * draw.lognormvariate(0, 0.003)}


@pytest.fixture(scope="session")
def rows(write_records):
    return [row for problem in problems() for row in row_of(write_records, problem)]


@pytest.fixture(scope="session")
def data(rows, write_records, tmp_path_factory):
    """The folder of a file with these records."""
    folder = tmp_path_factory.mktemp("data")
    write_records(folder / "gemm.csv", rows)
    return folder


@pytest.fixture(scope="session")
def frame(data):
    return records.read(data / "gemm.csv")
