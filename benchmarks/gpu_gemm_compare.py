# SPDX-License-Identifier: MIT
"""A GEMM as benchmarks/gpu_compare.py measures it: its operands, the reference, our calls and those of the peers.

The peers are cuBLAS and cuBLASLt, as torch calls them; of the 8-bit types cuBLASLt alone.
"""
import math
import sys

import torch

import tilewise
from gpu_compare import DEVICE, DTYPES, Operands, capture, count_sets, poison
from gpu_problems import ELEMENT_BYTES, GemmCase
from gpu_report import PEERS

OUTPUTS = {**DTYPES, "fp8": torch.float16, "int8": torch.int32}
assert DTYPES.keys() == ELEMENT_BYTES.keys()
MOST_FP64_BYTES = 48 << 30  # of a reference with its operands; beyond, it is made in fp32
PEER_ERROR = 0.02  # of the norm: tells a peer's other way to round from another product


def make_sets(case: GemmCase) -> list[Operands]:
    def make(operand: str) -> torch.Tensor:  # each its own allocation, so that all are aligned alike
        shape, dtype = case.stored_shape(operand), (OUTPUTS if operand == "c" else DTYPES)[case.dtype]
        if case.dtype == "int8":
            return torch.randint(-128, 128, shape, dtype=dtype, device=DEVICE)
        return torch.randn(shape, device=DEVICE, dtype=torch.float16 if case.dtype == "fp8" else dtype).to(dtype)

    return [Operands(make("a"), make("b"), make("c")) for _ in range(count_sets(case))]


def as_written(case: GemmCase, one: Operands) -> tuple[torch.Tensor, torch.Tensor]:
    """Views of A and B whose product lies in memory as C does."""
    a = one.a if case.layout[0] == "r" else one.a.mT
    b = one.b if case.layout[1] == "r" else one.b.mT
    return (a, b) if case.layout[2] == "r" else (b.mT, a.mT)


def make_reference(case: GemmCase, one: Operands) -> torch.Tensor:
    elements = sum(math.prod(case.stored_shape(operand)) for operand in "abc")
    dtype = torch.float64 if 8 * elements <= MOST_FP64_BYTES else torch.float32
    a, b = as_written(case, one)
    return torch.matmul(a.to(dtype), b.to(dtype))


def our_calls(case: GemmCase, strategy: str | None, sets: list[Operands], kernel: str | None = None) -> list:
    def bind(one: Operands):
        return lambda: tilewise.gemm(one.a, one.b, layout=case.layout, out=one.c, strategy=strategy, math=case.math,
                                     kernel=kernel)

    return [bind(one) for one in sets]


def peer_calls(case: GemmCase, sets: list[Operands]) -> list:
    product = torch.mm if case.batch == 1 else torch.bmm
    if case.dtype == "int8":
        product = torch._int_mm
    if case.dtype == "fp8":
        one_fp32 = torch.ones((), device=DEVICE)

        def product(a, b, out):
            torch._scaled_mm(a, b, one_fp32, one_fp32, out_dtype=out.dtype, use_fast_accum=case.math == "fast", out=out)

    def bind(one: Operands):
        a, b = as_written(case, one)
        return lambda: product(a, b, out=one.c)

    return [bind(one) for one in sets]


def capture_peers(case: GemmCase, stream: torch.cuda.Stream, sets: list[Operands], reference: torch.Tensor,
                  rounds: int) -> dict[str, torch.cuda.CUDAGraph]:
    """Graphs of the peers that can do the problem."""
    graphs = {}
    for name in PEERS if ELEMENT_BYTES[case.dtype] > 1 else ["cublaslt"]:  # which has the 8-bit types alone
        torch.backends.cuda.preferred_blas_library(name)
        calls = peer_calls(case, sets)
        poison(sets[0].c)
        try:
            calls[0]()
        except RuntimeError as error:
            print(f"{name} cannot do {case.text}: {error}", file=sys.stderr)
            continue
        error = ((sets[0].c.to(reference.dtype) - reference).norm() / reference.norm()).item()
        if not error <= PEER_ERROR:
            raise RuntimeError(f"{name} computes something else: relative error {error:.3g}")
        torch.cuda.synchronize()
        graphs[name] = capture(stream, calls, rounds)
    return graphs
