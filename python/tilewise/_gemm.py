# SPDX-License-Identifier: MIT
"""tilewise.gemm: from arrays to a problem, from the problem to a prepared kernel, and the launch.

The first call with operands of a kind works all of it out (_gemm_problem.py). Later calls with the same types,
shapes, strides, alignment and options find the prepared kernel under one key and only hand over addresses.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._arrays import DEFAULT_ALIGN, LOOKS, look_of
from ._entry import entries, launch, prepare_entry
from ._gemm_problem import GemmCall
from ._operands import d_ops_text, fold_numbers, look_at_more
from ._runtime import AnyKernel, check_number, kernel_text


def gemm(a: Any, b: Any, *, layout: str = "rcr", out: Any = None, out_dtype: Any = None, bias: Any = None,
         activation: str | None = None, d: Any = None, d_op: str | Sequence[str] = "add", alpha: float = 1.0,
         beta: float = 0.0, scale_a: Any = None, scale_b: Any = None, math: str = "strict", stream: Any = None,
         workspace: Any = None, kernel: AnyKernel = None,
         strategy: str | None = None) -> Any:
    """C = D-ops(activation(alpha * scale_a * scale_b * A @ B + beta * C + bias)), in one kernel.

    Operands are NumPy arrays, torch tensors or objects with __dlpack__, in memory order: the letters of `layout` say for
    A, B and C whether an array is stored as written (r: A (m, k), B (k, n), C (m, n)) or transposed (c: A (k, m),
    B (n, k), C (n, m)). A leading dimension is a batch; an operand without it, or with 1 or stride 0, serves the batch.

    out         the array to write, and to add beta times; made in a's library and device if not given
    out_dtype   type of an output that is made: the inputs', float16 for 8-bit floats, int32 for int8 by default
    bias        n values of the output's type
    activation  relu, relu6, gelu, gelu_tanh, silu, sigmoid, tanh, hardswish, or several joined by +; add and mul among them
                take the next array of d: "add+relu" adds it before relu
    d, d_op     up to four arrays of C's shape and type, and how to combine those that activation leaves: add or mul
    scale_a/_b  numbers; or arrays of float32: both of one value, or of m and n values
    math        strict, fast, tf32 or tf32x3
    stream      of a GPU: an integer handle or an object with .cuda_stream; torch's current stream if not given
    workspace   an array for the kernel's scratch memory; made if not given
    kernel      a kernel's name or config: this one and no other;  strategy: how to choose, "measure" times the best few
    """
    address_a, key_a = (LOOKS.get(type(a)) or look_of(a, "a"))(a)
    address_b, key_b = (LOOKS.get(type(b)) or look_of(b, "b"))(b)
    if out is None:
        address_c, key_c = 0, None
    else:
        address_c, key_c = (LOOKS.get(type(out)) or look_of(out, "out"))(out)
    bits = address_a | address_b | address_c | DEFAULT_ALIGN
    if bias is None and d is None and scale_a is None and scale_b is None:
        more = key_more = None
    else:
        alpha, scale_a, scale_b = fold_numbers(alpha, scale_a, scale_b)
        more, key_more, more_bits = look_at_more(bias, d, scale_a, scale_b)
        key_more = (key_more, d_ops_text(d_op))
        bits |= more_bits
    kernel = None if kernel is None else kernel_text(kernel)
    key = (key_a, key_b, key_c, out_dtype, key_more, layout, activation, math, beta != 0, bits & -bits, kernel, strategy)
    try:
        entry = entries.get(key)
    except TypeError:  # something that is no key: an argument of the wrong kind, which is refused below
        check_number(beta, "beta")
        entry = None
    if entry is None:
        call = GemmCall(a, b, out, out_dtype, bias, d, d_op, scale_a, scale_b)
        fields = call.fields(layout, activation, beta != 0, math, bits & -bits)
        entry = prepare_entry(key, call, fields, strategy, kernel, a, stream)
    return launch(entry, a, address_a, address_b, out, address_c, more, alpha, beta, stream, workspace)
