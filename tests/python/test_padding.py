# SPDX-License-Identifier: MIT
"""Kernels that need aligned sizes, from Python: the result is that of any other, and the plan says what was done."""
import numpy as np
import pytest

import tilewise


@pytest.fixture(scope="module")
def kernel():
    """One for whatever this machine is: the kernel that would be chosen, made to want whole tiles."""
    name = tilewise.prepare("gemm:m=33,n=21,k=17,dtype=fp32,layout=rcr").kernel
    arch = name.partition("@")[2]
    return next(kernel.config for kernel in tilewise.kernels("gemm", arch, dtype="fp32") if kernel.name == name) | {"pad": "none"}


@pytest.mark.compiles
def test_a_padded_product_is_right_and_noted(kernel):
    product = tilewise.prepare("gemm:m=33,n=21,k=17,dtype=fp32,layout=rcr", kernel=kernel)
    assert [note["kind"] for note in product.plan.notes] == ["padding"]
    assert "m from 33 to " in product.plan.notes[0]["message"] or "n from 21 to " in product.plan.notes[0]["message"]
    assert product.workspace_bytes > 0
    numbers = np.random.default_rng(3)
    a, b = (numbers.integers(-4, 5, shape).astype(np.float32) for shape in ((33, 17), (21, 17)))
    np.testing.assert_array_equal(product(a, b), a @ b.T)


@pytest.mark.compiles
def test_gemm_takes_such_a_kernel(kernel):
    numbers = np.random.default_rng(4)
    a, b, c = (numbers.integers(-4, 5, shape).astype(np.float32) for shape in ((33, 17), (21, 17), (33, 21)))
    expected = 2 * (a @ b.T) + c
    tilewise.gemm(a, b, out=c, alpha=2.0, beta=1.0, kernel=kernel)
    np.testing.assert_array_equal(c, expected)


def test_candidates_say_whether_they_pad():
    odd = "gemm:m=100,n=101,k=102,dtype=bf16,layout=rcr"
    padded = tilewise.select(odd, arch="gfx942", rule_set="tiny")
    assert padded.notes and all(candidate.padded for candidate in padded.candidates)
    assert not any(candidate.padded for candidate in tilewise.select(odd, arch="gfx942", rule_set="full").candidates)
