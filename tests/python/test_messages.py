# SPDX-License-Identifier: MIT
"""The first things that newcomers try from Python."""
import numpy as np
import pytest

import tilewise

A, B = np.ones((4, 8), np.float32), np.ones((6, 8), np.float32)


def test_an_unknown_kernel():
    with pytest.raises(tilewise.UsageError, match="'nope'.*@arch.*tilewise kernels"):
        tilewise.gemm(A, B, kernel="nope")


def test_a_kernel_by_its_id():
    kernel = tilewise.kernels("gemm", dtype="fp32", rule_set="builtin")[0]
    assert tilewise.check(kernel.id).valid
    np.testing.assert_array_equal(tilewise.gemm(A, B, kernel=kernel.id), A @ B.T)
    assert tilewise.prepare("gemm:m=4,n=6,k=8,dtype=fp32", kernel=kernel.id).kernel == kernel.name


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), "torch.float32"])
def test_types_of_other_libraries(dtype):
    assert tilewise.Problem("gemm", m=4, n=4, k=4, dtype=dtype).dtype == "fp32"
    assert tilewise.kernels("gemm", dtype=dtype, rule_set="tiny") == tilewise.kernels("gemm", dtype="fp32", rule_set="tiny")


def test_types_of_torch():
    torch = pytest.importorskip("torch")
    assert tilewise.Problem("gemm", m=4, n=4, k=4, dtype=torch.bfloat16, out=torch.float32).text == \
        tilewise.Problem("gemm:m=4,n=4,k=4,dtype=bf16,out=fp32").text
    assert tilewise.gemm(torch.zeros(4, 0), torch.zeros(6, 0)).shape == (4, 6)
    assert tilewise.gemm(torch.zeros(0, 8), torch.zeros(6, 8)).shape == (0, 6)


def test_what_is_no_type_is_said():
    with pytest.raises(TypeError, match="dtype"):
        tilewise.Problem("gemm", m=4, n=4, k=4, dtype=object())
