# SPDX-License-Identifier: MIT
"""Element types, written from their definitions: bits to float64, and float64 to the nearest value of a type."""
import functools

import numpy as np

BYTES = {"fp32": 4, "int32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "bf8": 1, "int8": 1}
STORED = {1: np.uint8, 2: np.uint16, 4: np.uint32}
INTEGERS = {"int8": (-128.0, 127.0), "int32": (-2147483648.0, 2147483647.0)}
# Bits after the point, exponent of the smallest normal number, largest number.
FLOATS = {"fp32": (23, -126, (2 - 2.0**-23) * 2.0**127), "fp16": (10, -14, 65504.0),
          "bf16": (7, -126, (2 - 2.0**-7) * 2.0**127), "fp8": (3, -6, 448.0), "bf8": (2, -14, 57344.0)}
SATURATING = ("fp8", "bf8")


@functools.cache
def _byte_values(dtype):
    """The value of each of the 256 bytes."""
    bits, least, _ = FLOATS[dtype]
    values = np.empty(256)
    for byte in range(256):
        sign = -1.0 if byte & 0x80 else 1.0
        exponent, fraction = (byte & 0x7f) >> bits, byte & ((1 << bits) - 1)
        if dtype == "bf8" and exponent == 31:
            values[byte] = np.nan if fraction else sign * np.inf
        elif dtype == "fp8" and byte & 0x7f == 0x7f:
            values[byte] = np.nan
        elif exponent == 0:
            values[byte] = sign * fraction * 2.0**(least - bits)
        else:
            values[byte] = sign * (1 + fraction / (1 << bits)) * 2.0**(exponent - 1 + least)
    return values


def decode(dtype, bits):
    """float64 values of an array of stored bits."""
    if dtype in SATURATING:
        return _byte_values(dtype)[bits]
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    native = {"fp32": np.float32, "fp16": np.float16, "int8": np.int8, "int32": np.int32}[dtype]
    return np.ascontiguousarray(bits).view(native).astype(np.float64)


def nearest(dtype, values):
    """The values a type rounds to, ties to even. Floats of 8 bits and integers saturate, infinities too."""
    if dtype in INTEGERS:
        return np.clip(np.rint(np.where(np.isnan(values), 0, values)), *INTEGERS[dtype])
    if dtype == "fp32":
        return values.astype(np.float32).astype(np.float64)
    if dtype == "fp16":
        return values.astype(np.float16).astype(np.float64)
    bits, least, largest = FLOATS[dtype]
    _, exponent = np.frexp(values)
    step = np.ldexp(1.0, np.maximum(exponent - 1, least) - bits)
    rounded = np.rint(values / step) * step
    beyond = np.copysign(largest if dtype in SATURATING else np.inf, values)
    rounded = np.where(np.abs(rounded) <= largest, rounded, beyond)
    return np.where(np.isinf(values), beyond, np.where(np.isnan(values), values, rounded))


def encode(dtype, values):
    """The stored bits of values, rounded."""
    if dtype in SATURATING:
        order = _sorted_bytes(dtype)
        rounded = nearest(dtype, values)
        bits = order[1][np.minimum(np.searchsorted(order[0], np.abs(rounded)), len(order[0]) - 1)]
        bits = np.where(np.isnan(values), 0x7f, np.where(np.isinf(values) & (dtype == "bf8"), 0x7c, bits))
        return (bits | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)
    rounded = nearest(dtype, values)
    if dtype == "bf16":
        return (rounded.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    native = {"fp32": np.float32, "fp16": np.float16, "int8": np.int8, "int32": np.int32}[dtype]
    return rounded.astype(native).view(STORED[BYTES[dtype]])


@functools.cache
def _sorted_bytes(dtype):
    """The values of the bytes without sign that are numbers or infinity, in order, and the bytes."""
    values = _byte_values(dtype)[:128]
    kept = np.flatnonzero(~np.isnan(values))
    return values[kept], kept
