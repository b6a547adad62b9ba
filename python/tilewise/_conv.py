# SPDX-License-Identifier: MIT
"""tilewise.conv_forward, conv_backward_data and conv_backward_weight: grouped convolutions of one to three dimensions on
channels-last arrays. As in _gemm.py, the first call with operands of a kind works the problem out (_conv_problem.py), later
ones find the prepared kernel under one key.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._arrays import DEFAULT_ALIGN, LOOKS, look_of
from ._conv_problem import ConvCall, Geometry, frozen
from ._entry import entries, is_key, launch, prepare_entry
from ._operands import d_ops_text, look_at_more
from ._runtime import AnyKernel, check_number, kernel_text

Sizes = int | Sequence[int]  # one number for every dimension, or one for each
Padding = int | Sequence[int | Sequence[int]]  # also (before, after) for each dimension


def _convolve(op: str, a: Any, b: Any, names: tuple[str, str], geometry: Geometry, like: Any, out: Any, out_dtype: Any,
              bias: Any, activation: str | None, d: Any, d_op: str | Sequence[str], alpha: float, beta: float,
              math: str, stream: Any, workspace: Any, kernel: AnyKernel,
              strategy: str | None) -> Any:
    address_a, key_a = (LOOKS.get(type(a)) or look_of(a, names[0]))(a)
    address_b, key_b = (LOOKS.get(type(b)) or look_of(b, names[1]))(b)
    if out is None:
        address_c, key_c = 0, None
    else:
        address_c, key_c = (LOOKS.get(type(out)) or look_of(out, "out"))(out)
    bits = address_a | address_b | address_c | DEFAULT_ALIGN
    more = key_more = None
    if bias is not None or d is not None:
        more, key_more, more_bits = look_at_more(bias, d, None, None)
        key_more = (key_more, d_ops_text(d_op))
        bits |= more_bits
    kernel = None if kernel is None else kernel_text(kernel)
    key = (op, key_a, key_b, key_c, out_dtype, key_more, geometry, activation, math, beta != 0, bits & -bits, kernel, strategy)
    try:
        entry = entries.get(key)
    except TypeError:  # a list where a tuple would do, or an argument of the wrong kind, which is refused below
        check_number(beta, "beta")
        geometry = frozen(geometry)
        key = (*key[:6], geometry, *key[7:])
        entry = entries.get(key) if is_key(key) else None
    if entry is None:
        call = ConvCall(op, a, b, names, out, out_dtype, bias, d, d_op)
        fields = call.fields(geometry, activation, beta != 0, math, bits & -bits)
        entry = prepare_entry(key, call, fields, strategy, kernel, like, stream)
    return launch(entry, like, address_a, address_b, out, address_c, more, alpha, beta, stream, workspace)


def conv_forward(x: Any, w: Any, *, stride: Sizes = 1, padding: Padding = 0, dilation: Sizes = 1, bias: Any = None,
                 activation: str | None = None, out: Any = None, out_dtype: Any = None, d: Any = None,
                 d_op: str | Sequence[str] = "add", alpha: float = 1.0, beta: float = 0.0, math: str = "strict",
                 stream: Any = None, workspace: Any = None, kernel: AnyKernel = None,
                 strategy: str | None = None) -> Any:
    """y = D-ops(activation(alpha * conv(x, w) + beta * y + bias)): a grouped convolution, in one kernel.

    Operands are NumPy arrays, torch tensors or objects with __dlpack__, contiguous:
    x (images, *input, groups, c/groups), w (groups, k/groups, *filter, c/groups), y (images, *output, groups, k/groups),
    with one to three sizes each for input, filter and output.

    stride, dilation  a number, or one for each dimension
    padding           a number, one for each dimension, or a pair (before, after) for each
    bias              one value for each of the k output channels, of the output's type
    The other arguments are those of tilewise.gemm.
    """
    return _convolve("conv_fwd", x, w, ("x", "w"), (stride, padding, dilation, None), x, out, out_dtype, bias, activation,
                     d, d_op, alpha, beta, math, stream, workspace, kernel, strategy)


def conv_backward_data(dy: Any, w: Any, *, input_size: Sizes, stride: Sizes = 1, padding: Padding = 0,
                       dilation: Sizes = 1, bias: Any = None, activation: str | None = None, out: Any = None,
                       out_dtype: Any = None, d: Any = None, d_op: str | Sequence[str] = "add", alpha: float = 1.0,
                       beta: float = 0.0, math: str = "strict", stream: Any = None, workspace: Any = None,
                       kernel: AnyKernel = None, strategy: str | None = None) -> Any:
    """dx: the gradient of conv_forward's input, from dy (images, *output, groups, k/groups) and w. With bias (one
    value for each of the c channels of dx) and activation it is a transposed convolution.

    input_size  the sizes of dx; with a stride above 1 those of dy do not determine them
    """
    return _convolve("conv_bwd_data", dy, w, ("dy", "w"), (stride, padding, dilation, input_size), dy, out, out_dtype,
                     bias, activation, d, d_op, alpha, beta, math, stream, workspace, kernel, strategy)


def conv_backward_weight(x: Any, dy: Any, *, filter_size: Sizes, stride: Sizes = 1, padding: Padding = 0,
                         dilation: Sizes = 1, out: Any = None, out_dtype: Any = None, alpha: float = 1.0,
                         beta: float = 0.0, math: str = "strict", stream: Any = None, workspace: Any = None,
                         kernel: AnyKernel = None, strategy: str | None = None) -> Any:
    """dw (groups, k/groups, *filter, c/groups): the gradient of conv_forward's weights, from its input x and dy.

    filter_size  the sizes of the filter; with a stride above 1 those of x and dy do not determine them
    beta         1 with out= adds to the values of out, which accumulates gradients
    """
    return _convolve("conv_bwd_weight", dy, x, ("dy", "x"), (stride, padding, dilation, filter_size), x, out, out_dtype,
                     None, None, None, "add", alpha, beta, math, stream, workspace, kernel, strategy)
