# SPDX-License-Identifier: MIT
"""A grouped convolution and its two gradients in float64, straight from the definition: one tap at a time, in any number of
dimensions. Shares nothing with the library.
"""
import itertools

import numpy as np


def pairs(padding, rank):
    """(before, after) for each dimension."""
    each = [padding] * rank if np.isscalar(padding) else list(padding)
    return [(item, item) if np.isscalar(item) else tuple(item) for item in each]


def spread(value, rank):
    return (value,) * rank if np.isscalar(value) else tuple(value)


class Taps:
    """For each tap: its place in the filter, and the slice of the padded input that it meets."""

    def __init__(self, sizes, filter_sizes, stride, padding, dilation):
        rank = len(sizes)
        self.filter, self.stride, self.dilation = filter_sizes, spread(stride, rank), spread(dilation, rank)
        self.pads = pairs(padding, rank)
        self.output = tuple((size + sum(pad) - step * (taps - 1) - 1) // stride + 1 for size, pad, step, taps, stride in
                            zip(sizes, self.pads, self.dilation, filter_sizes, self.stride))

    def __iter__(self):
        for tap in itertools.product(*map(range, self.filter)):
            place = tuple(slice(at * step, at * step + stride * (count - 1) + 1, stride)
                          for at, step, stride, count in zip(tap, self.dilation, self.stride, self.output))
            yield tap, place

    def pad(self, x):
        return np.pad(x, [(0, 0), *self.pads, (0, 0), (0, 0)])

    def crop(self, x):
        inside = tuple(slice(before, x.shape[i + 1] - after) for i, (before, after) in enumerate(self.pads))
        return x[(slice(None), *inside)]


def forward(x, w, stride=1, padding=0, dilation=1):
    x, w = x.astype(np.float64), w.astype(np.float64)
    taps = Taps(x.shape[1:-2], w.shape[2:-1], stride, padding, dilation)
    padded = taps.pad(x)
    y = np.zeros((x.shape[0], *taps.output, w.shape[0], w.shape[1]))
    for tap, place in taps:
        y += np.einsum("n...gc,gkc->n...gk", padded[(slice(None), *place)], w[(slice(None), slice(None), *tap)])
    return y


def backward_data(dy, w, input_size, stride=1, padding=0, dilation=1):
    dy, w = dy.astype(np.float64), w.astype(np.float64)
    taps = Taps(input_size, w.shape[2:-1], stride, padding, dilation)
    padded = taps.pad(np.zeros((dy.shape[0], *input_size, w.shape[0], w.shape[-1])))
    for tap, place in taps:
        padded[(slice(None), *place)] += np.einsum("n...gk,gkc->n...gc", dy, w[(slice(None), slice(None), *tap)])
    return taps.crop(padded)


def backward_weight(x, dy, filter_size, stride=1, padding=0, dilation=1):
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    taps = Taps(x.shape[1:-2], filter_size, stride, padding, dilation)
    padded = taps.pad(x)
    groups, filters = dy.shape[-2:]
    dw = np.zeros((groups, filters, *filter_size, x.shape[-1]))
    for tap, place in taps:
        met = padded[(slice(None), *place)].reshape(-1, groups, x.shape[-1])
        dw[(slice(None), slice(None), *tap)] = np.einsum("pgc,pgk->gkc", met, dy.reshape(-1, groups, filters))
    return dw
