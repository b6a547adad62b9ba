# SPDX-License-Identifier: MIT
"""The values of operands."""
import numpy as np

from formats import BYTES, FLOATS, INTEGERS, STORED, encode

STYLES = ("normal", "whole", "wide", "special", "tiny", "extreme", "ones")


def fill(rng, style, dtype, shape):
    """Stored bits of random values of a style."""
    if dtype in INTEGERS:
        return _integers(rng, style, dtype, shape)
    if style == "whole":
        return encode(dtype, rng.integers(-2, 3, shape).astype(np.float64))
    if style == "ones":
        return encode(dtype, np.where(rng.random(shape) < 0.9, 1.0, -0.0))
    values = rng.standard_normal(shape)
    if style == "wide":
        reach = {"fp32": 30, "bf16": 30, "fp16": 6, "fp8": 3, "bf8": 6}[dtype]
        values = np.ldexp(values, rng.integers(-reach, reach + 1, shape))
    if style == "tiny":
        values = _tiny(rng, dtype, values)
    if style == "extreme":
        limit = FLOATS[dtype][2] if BYTES[dtype] == 1 else 32768.0 if dtype == "fp16" else 2.0**rng.choice((60, 70))
        values = np.where(rng.random(shape) < 0.5, values, np.copysign(limit, values))
        values = np.abs(values) if rng.random() < 0.3 else values
    if style == "special":
        values = _sprinkled(rng, dtype, values)
    return encode(dtype, values)


def _tiny(rng, dtype, values):
    """Half of them below the smallest normal number, half so large that products of the two are not."""
    bits, least, _ = FLOATS[dtype]
    below = np.ldexp(np.copysign(1 + np.abs(values) % 1, values), rng.integers(least - bits, least, values.shape))
    large = np.ldexp(values, {"fp32": 60, "bf16": 60, "fp16": 8, "fp8": 4, "bf8": 8}[dtype])
    return np.where(rng.random(values.shape) < 0.5, below, large)


def _sprinkled(rng, dtype, values):
    """A few values that are no numbers, and zeros of both signs."""
    count = int(rng.integers(1, 4))
    flat = values.reshape(-1)
    strange = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
    flat[rng.integers(0, flat.size, count)] = strange[rng.integers(0, strange.size, count)]
    if dtype == "fp8":  # it has no infinity
        flat[np.isinf(flat)] = np.nan
    return flat.reshape(values.shape)


def _integers(rng, style, dtype, shape):
    stored = STORED[BYTES[dtype]]
    if dtype == "int32":
        return rng.integers(-1000, 1000, shape, dtype=np.int32).view(stored)
    if style == "whole":
        return rng.integers(-2, 3, shape, dtype=np.int8).view(stored)
    if style == "extreme":
        return np.where(rng.random(shape) < rng.choice((0, 0, 0, 0.5)), 127, -128).astype(np.int8).view(stored)
    if style == "ones":
        return np.ones(shape, stored)
    return rng.integers(-128, 128, shape, dtype=np.int8).view(stored)
