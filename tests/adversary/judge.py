# SPDX-License-Identifier: MIT
"""The verdict on every element of a result."""
import numpy as np

from formats import INTEGERS, nearest


def wrong(dtype, expected, got):
    """Where `got`, decoded, is not what rounding any value within the bound gives."""
    x, error = expected.value, np.where(np.isfinite(expected.value), expected.error, 0)
    low, high = nearest(dtype, x - error), nearest(dtype, x + error)
    right = (low <= got) & (got <= high)
    if dtype in INTEGERS:
        right |= np.isnan(x) & (got == 0)
    else:
        right |= np.isnan(got) & (np.isnan(x) | expected.or_nan)
    return ~(right | expected.anything)


def describe(expected, got, places):
    """The first wrong element in words, and how many there are."""
    count = int(places.sum())
    first = tuple(int(i) for i in np.argwhere(places)[0])
    return (f"{count} of {places.size} wrong, first at {first}: got {got[first]:.9g}, expected "
            f"{expected.value[first]:.9g} within {expected.error[first]:.3g}")
