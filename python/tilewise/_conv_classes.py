# SPDX-License-Identifier: MIT
"""Classes of convolutions that problem_sets.py draws from: layers of networks, random ones, thin ones, neighbours of others, and
those that are hard to be fast on. A class is a function from random choices to the fields of a problem; the three directions
share them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ._draw import ALIGNMENTS, MOST_BATCH, Draw, Fields
from ._network_layers import NETWORKS, Layer, conv

__all__ = ["HARD", "NETWORKS", "from_network", "neighbour", "random", "thin"]

CHANNELS_LAST, CHANNELS_FIRST = ("nwgc", "nhwgc", "ndhwgc"), ("ngcw", "ngchw", "ngcdhw")


def text_of(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def fields_of(draw: Draw, layer: Layer, images: int) -> Fields:
    layouts = CHANNELS_FIRST if draw.chance(15) else CHANNELS_LAST
    rank = len(layer.size)
    return {"n": images, "g": layer.groups, "c": layer.c, "k": layer.k, "in": text_of(layer.size),
            "filter": text_of(layer.filter), "stride": text_of(layer.stride), "pad": text_of(layer.pad),
            "dilation": text_of([layer.dilation] * rank), "layout": layouts[rank - 1]}


def from_network(draw: Draw, layer: Layer) -> Fields:
    """The layer for an image of another size, a fifth of them not square. An image of one pixel stays one."""
    scale = draw.one_of((50, 57, 67, 75, 86, 100, 100, 100, 114, 133, 150, 171, 200, 229))
    scales = [scale] * len(layer.size)
    if draw.chance(20):
        scales[-1] = scale * draw.one_of((50, 75, 133, 178, 200)) // 100
    reach = [layer.dilation * (f - 1) + 1 - 2 * p for f, p in zip(layer.filter, layer.pad)]
    size = [extent if extent == 1 else max(2, least, extent * percent // 100)
            for extent, percent, least in zip(layer.size, scales, reach)]
    return fields_of(draw, layer, draw.count(1, MOST_BATCH)) | {"in": text_of(size)}


def random_layer(draw: Draw, c: int, k: int, groups: int = 1) -> Layer:
    rank = draw.one_of((1, 2, 2, 2, 2, 2, 2, 3))
    most = (16384, 256, 64)[rank - 1]
    size = [draw.log_between(4, most)] * rank
    if draw.chance(25):
        size[-1] = draw.log_between(4, most)
    dilation = draw.between(2, 4) if draw.chance(10) else 1
    filter = draw.one_of((1, 1, 2, 3, 3, 3, 3, 4, 5, 7) if rank < 3 else (1, 2, 3, 3, 3))
    filter = min(filter, (min(size) - 1) // dilation + 1)
    stride = draw.one_of((1, 1, 1, 2, 2, 3))
    return conv(c, k, tuple(size), filter, stride, groups, dilation, 0 if draw.chance(10) else None)


def random(draw: Draw) -> Fields:
    multiple = draw.one_of(ALIGNMENTS)
    groups = 1
    if draw.chance(45):
        groups = draw.log_between(2, 64) if draw.chance(60) else draw.log_between(8, 2048, 8)
    if groups == 1:
        c, k = (draw.log_between(max(9, multiple), 2048, multiple) for _ in "ck")
    else:
        width = draw.log_between(1, 64) if groups <= 64 else 1
        c, k = groups * width, groups * width * draw.one_of((1, 1, 1, 2))
    layer = random_layer(draw, c, k, groups)
    fields = fields_of(draw, layer, draw.count(1, MOST_BATCH)) | draw.align()
    if draw.chance(5):  # more on the right, as where an output of even size is wanted
        fields["pad"] = "x".join(f"{pad}:{pad + 1}" for pad in layer.pad)
    return fields


def thin(draw: Draw) -> Fields:
    """One to eight channels on one side."""
    few, many = draw.between(1, 8), draw.log_between(8, 1024, draw.one_of(ALIGNMENTS))
    c, k = (few, many) if draw.chance(50) else (many, few)
    return fields_of(draw, random_layer(draw, c, k), draw.count(1, MOST_BATCH)) | draw.align()


def neighbour(draw: Draw, fields: Fields) -> Fields:
    """Another layer with sizes that are one more or one less, at least one of them; channels only where no groups share them.
    Small images only grow, so that the filter fits."""
    extents = [int(extent) for extent in fields["in"].split("x")]
    changed = fields
    while changed == fields:
        changed = fields | {"in": text_of([extent + draw.between(0 if extent < 16 else -1, 1) for extent in extents])}
        if fields["g"] == 1:
            changed |= {name: max(1, fields[name] + draw.between(-1, 1)) for name in "ck"}
    return changed


def few_in(draw: Draw) -> Layer:
    return conv(draw.between(1, 9), draw.log_between(32, 512, 8), draw.between(24, 128), draw.one_of((3, 5, 7)),
                draw.one_of((1, 2)))


def few_out(draw: Draw) -> Layer:
    return conv(draw.log_between(32, 512, 8), draw.between(1, 8), draw.between(24, 128), draw.one_of((1, 3, 3)))


def uneven_channels(draw: Draw) -> Layer:
    return conv(draw.log_between(17, 300), draw.log_between(17, 300), draw.between(16, 80), draw.one_of((1, 3, 3)))


def strided_depthwise(draw: Draw) -> Layer:
    c = draw.log_between(32, 1024, 8)
    return conv(c, c, draw.between(14, 128), draw.one_of((3, 5, 7)), 2, c)


def deep_small(draw: Draw) -> Layer:
    return conv(draw.log_between(448, 3072, 64), draw.log_between(448, 3072, 64), draw.between(4, 16),
                draw.one_of((1, 3)))


def long_filter(draw: Draw) -> Layer:
    length = draw.one_of((3, 5, 7, 9, 11, 15))
    return conv(draw.log_between(64, 512, 32), draw.log_between(64, 512, 32), draw.between(12, 48),
                draw.one_of(((1, length), (length, 1))))


def dilated(draw: Draw) -> Layer:
    return conv(draw.log_between(128, 2048, 64), draw.log_between(64, 512, 64), draw.between(28, 72), 3, 1, 1,
                draw.one_of((2, 4, 6, 12, 18)))


def images_of(layer: Callable[[Draw], Layer]) -> Callable[[Draw], Fields]:
    return lambda draw: fields_of(draw, layer(draw), draw.count(1, 64))


HARD = {"few-in": images_of(few_in), "few-out": images_of(few_out), "uneven-channels": images_of(uneven_channels),
        "strided-depthwise": images_of(strided_depthwise), "deep-small": images_of(deep_small),
        "long-filter": images_of(long_filter), "dilated": images_of(dilated)}
