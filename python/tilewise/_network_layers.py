# SPDX-License-Identifier: MIT
"""The convolutions of the networks that problem sets are drawn from, as facts: stages written out into layers.

Sizes of inputs are those of each network's usual image. problem_sets.py draws others, and the number of images.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

Extents = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Layer:
    """A convolution; c and k are totals over the groups, as in the problem's text."""

    c: int
    k: int
    size: Extents
    filter: Extents
    stride: Extents
    pad: Extents
    groups: int = 1
    dilation: int = 1


def conv(c: int, k: int, size: int | Extents, filter: int | Extents = 3, stride: int | Extents = 1, groups: int = 1,
         dilation: int = 1, pad: int | None = None) -> Layer:
    """One number as the size is that of a square image. Unless given, the padding keeps the size where the
    stride is 1; patches that do not overlap have none."""
    sizes = (size, size) if isinstance(size, int) else size
    filters, strides = ((x,) * len(sizes) if isinstance(x, int) else x for x in (filter, stride))
    pads = tuple(dilation * (f - 1) // 2 if pad is None and f != s else pad or 0 for f, s in zip(filters, strides))
    return Layer(c, k, sizes, filters, strides, pads, groups, dilation)


def depthwise(c: int, size: int | Extents, filter: int | Extents = 3, stride: int = 1, dilation: int = 1) -> Layer:
    return conv(c, c, size, filter, stride, c, dilation)


def basic_resnet() -> Iterator[Layer]:
    yield conv(3, 64, 224, 7, 2)
    c, size = 64, 56
    for width in (64, 128, 256, 512):
        if width != c:
            yield from (conv(c, width, size, 3, 2), conv(c, width, size, 1, 2))
            size //= 2
        yield conv(width, width, size)
        c = width


def bottlenecks(width: int, groups: int = 1) -> Iterator[Layer]:
    """The stages of a ResNet with bottlenecks, the first of them `width` wide inside."""
    yield conv(3, 64, 224, 7, 2)
    c, size = 64, 56
    for stage, out in enumerate((256, 512, 1024, 2048)):
        inner, stride = width << stage, 1 if stage == 0 else 2
        yield from (conv(c, inner, size, 1), conv(inner, inner, size, 3, stride, groups), conv(c, out, size, 1, stride))
        size //= stride
        yield from (conv(out, inner, size, 1), conv(inner, inner, size, 3, 1, groups), conv(inner, out, size, 1))
        c = out


def resnest() -> Iterator[Layer]:
    """Each 3x3 convolution gives two parts, which attention of two products weighs; strides are pooled before."""
    yield from (conv(3, 32, 224, 3, 2), conv(32, 32, 112), conv(32, 64, 112))
    c, size = 64, 56
    for width, out in ((64, 256), (128, 512), (256, 1024), (512, 2048)):
        yield from (conv(c, width, size, 1), conv(c, out, size, 1), conv(out, width, size, 1), conv(width, out, size, 1),
                    conv(width, 2 * width, size, 3, 1, 2), conv(width, width // 2, 1, 1), conv(width // 2, 2 * width, 1, 1))
        c, size = out, size // 2


def vgg() -> Iterator[Layer]:
    c = 3
    for size, widths in ((224, (64, 64)), (112, (128, 128)), (56, (256, 256)), (28, (512, 512)), (14, (512,))):
        for width in widths:
            yield conv(c, width, size)
            c = width


def repvgg(*widths: int) -> Iterator[Layer]:
    """While it is trained, each 3x3 convolution has one of 1x1 beside it."""
    c, size = 3, 224
    for width in widths:
        yield from (conv(c, width, size, 3, 2), conv(c, width, size, 1, 2))
        size //= 2
        yield from (conv(width, width, size), conv(width, width, size, 1))
        c = width


def inverted(c: int, size: int, rows: Iterable[tuple[int, int, int, int]], ghost: bool = False) -> Iterator[Layer]:
    """Inverted residuals: each row is filter, channels inside, channels out and stride. A ghost module computes half of its
    channels by 1x1 and the others of those by 3x3, depthwise."""
    for filter, inner, out, stride in rows:
        for before, after, here in ((c, inner, size), (inner, out, size // stride)):
            yield conv(before, after // 2 if ghost else after, here, 1)
            if ghost:
                yield depthwise(after // 2, here)
        if not ghost or stride > 1:
            yield depthwise(inner, size, filter, stride)
        c, size = out, size // stride


def mobilenet_v2() -> Iterator[Layer]:
    yield from (conv(3, 32, 224, 3, 2), depthwise(32, 112), conv(32, 16, 112, 1), conv(320, 1280, 7, 1))
    yield from inverted(16, 112, ((3, 96, 24, 2), (3, 144, 24, 1), (3, 144, 32, 2), (3, 192, 32, 1), (3, 192, 64, 2),
                                  (3, 384, 64, 1), (3, 384, 96, 1), (3, 576, 96, 1), (3, 576, 160, 2), (3, 960, 160, 1),
                                  (3, 960, 320, 1)))


def mnasnet() -> Iterator[Layer]:
    yield from (conv(3, 32, 224, 3, 2), depthwise(32, 112), conv(32, 16, 112, 1), conv(320, 1280, 7, 1))
    yield from inverted(16, 112, ((3, 48, 24, 2), (3, 72, 24, 1), (5, 72, 40, 2), (5, 120, 40, 1), (5, 240, 80, 2),
                                  (5, 480, 80, 1), (3, 480, 96, 1), (3, 576, 96, 1), (5, 576, 192, 2), (5, 1152, 192, 1),
                                  (3, 1152, 320, 1)))


V3_ROWS = ((5, 72, 40, 2), (5, 120, 40, 1), (3, 240, 80, 2), (3, 200, 80, 1), (3, 184, 80, 1), (3, 480, 112, 1),
           (3, 672, 112, 1), (5, 672, 160, 2), (5, 960, 160, 1))


def mobilenet_v3() -> Iterator[Layer]:
    yield from (conv(3, 16, 224, 3, 2), depthwise(16, 112), conv(16, 16, 112, 1), conv(160, 960, 7, 1),
                conv(960, 1280, 1, 1))
    yield from inverted(16, 112, ((3, 64, 24, 2), (3, 72, 24, 1), *V3_ROWS))
    for inner, squeezed in ((72, 24), (120, 32), (480, 120), (672, 168), (960, 240)):  # squeeze and excitation
        yield from (conv(inner, squeezed, 1, 1), conv(squeezed, inner, 1, 1))


def ghostnet() -> Iterator[Layer]:
    yield from (conv(3, 16, 224, 3, 2), conv(160, 960, 7, 1), conv(960, 1280, 1, 1))
    yield from inverted(16, 112, ((3, 16, 16, 1), (3, 48, 24, 2), (3, 72, 24, 1), *V3_ROWS), ghost=True)


def convnext() -> Iterator[Layer]:
    yield conv(3, 96, 224, 4, 4)
    for width, size in ((96, 56), (192, 28), (384, 14), (768, 7)):
        yield from (depthwise(width, size, 7), conv(width, 4 * width, size, 1), conv(4 * width, width, size, 1))
        if width < 768:
            yield conv(width, 2 * width, size, 2, 2)


def yolo() -> Iterator[Layer]:
    """The third version: Darknet-53 and the heads of three scales."""
    yield conv(3, 32, 416)
    c, size = 32, 416
    while c < 1024:
        yield conv(c, 2 * c, size, 3, 2)
        c, size = 2 * c, size // 2
        yield from (conv(c, c // 2, size, 1), conv(c // 2, c, size))
    for c, size in ((1024, 13), (512, 26), (256, 52)):
        yield conv(c, 255, size, 1)
        if c < 1024:
            yield conv(c + c // 2, c // 2, size, 1)


def shufflenet() -> Iterator[Layer]:
    yield from (conv(3, 24, 224, 3, 2), depthwise(24, 56, 3, 2), conv(24, 58, 28, 1), conv(24, 58, 56, 1),
                conv(116, 116, 28, 1), conv(232, 232, 14, 1), conv(464, 1024, 7, 1))
    for width, size in ((58, 28), (116, 14), (232, 7)):
        yield from (conv(width, width, size, 1), depthwise(width, size), depthwise(width, 2 * size, 3, 2))


def alexnet() -> Iterator[Layer]:
    yield from (conv(3, 64, 224, 11, 4, pad=2), conv(64, 192, 27, 5), conv(192, 384, 13), conv(384, 256, 13),
                conv(256, 256, 13))


def unet_3d() -> Iterator[Layer]:
    for c, k, extent in ((1, 32, 128), (32, 64, 128), (64, 64, 64), (64, 128, 64), (128, 128, 32), (128, 256, 32),
                         (256, 256, 16), (256, 512, 16), (768, 256, 32), (256, 256, 32), (384, 128, 64), (128, 128, 64),
                         (192, 64, 128), (64, 64, 128)):
        yield conv(c, k, (extent,) * 3)
    yield conv(64, 3, (128,) * 3, 1)


def audio() -> Iterator[Layer]:
    """The encoder of speech from samples, its positions, and a stack of plain layers on samples."""
    yield conv(1, 512, (16000,), 10, 5, pad=0)
    for length, filter in ((3199, 3), (1599, 3), (799, 3), (399, 3), (199, 2), (99, 2)):
        yield conv(512, 512, (length,), filter, 2, pad=0)
    yield conv(768, 768, (49,), 128, 1, 16, pad=64)
    yield from (conv(1, 128, (16000,), 80, 4, pad=0), conv(128, 128, (1000,)), conv(128, 256, (250,)),
                conv(256, 512, (62,)))
    for dilation in (1, 4, 16, 64):
        yield conv(64, 128, (8000,), 2, dilation=dilation)


def hrnet() -> Iterator[Layer]:
    yield from (conv(3, 64, 256, 3, 2), conv(64, 64, 128, 3, 2), conv(64, 64, 64, 1), conv(64, 64, 64),
                conv(64, 256, 64, 1), conv(256, 64, 64, 1), conv(256, 32, 64), conv(256, 64, 64, 3, 2))
    for branch, width in enumerate((32, 64, 128, 256)):
        size = 64 >> branch
        yield conv(width, width, size)
        for steps in range(1, 4 - branch):  # to and from the branches of half the size and less
            yield from (conv(width << steps, width, size >> steps, 1), conv(width, width << steps, size >> (steps - 1), 3, 2))
            if steps > 1:
                yield conv(width, width, size >> (steps - 2), 3, 2)


def conv_tasnet() -> Iterator[Layer]:
    """A decoder that is a transposed convolution computes what its backward data does."""
    yield from (conv(1, 512, (32000,), 16, 8, pad=0), conv(512, 128, (3999,), 1), conv(128, 512, (3999,), 1),
                conv(128, 1024, (3999,), 1))
    for step in range(8):
        yield depthwise(512, (3999,), 3, 1, 1 << step)


def c3d() -> Iterator[Layer]:
    for c, k, size in ((3, 64, (16, 112, 112)), (64, 128, (16, 56, 56)), (128, 256, (8, 28, 28)), (256, 256, (8, 28, 28)),
                       (256, 512, (4, 14, 14)), (512, 512, (4, 14, 14)), (512, 512, (2, 7, 7))):
        yield conv(c, k, size)


def edsr() -> Iterator[Layer]:
    for width in (64, 256):
        yield from (conv(3, width, 96), conv(width, width, 96), conv(width, 4 * width, 96), conv(width, 9 * width, 96),
                    conv(width, 3, 192))


def wave_unet() -> Iterator[Layer]:
    for step in range(12):
        c, k, length = 24 * step or 1, 24 * (step + 1), (16384 >> step,)
        yield from (conv(c, k, length, 15), conv(k + 24 * (step + 2), k, length, 5))
    yield conv(25, 1, (16384,), 1)


def slowfast() -> Iterator[Layer]:
    """A pathway of 4 frames, one of 32 with an eighth of the channels, and what joins the second to the first."""
    yield from (conv(3, 64, (4, 224, 224), (1, 7, 7), (1, 2, 2)), conv(3, 8, (32, 224, 224), (5, 7, 7), (1, 2, 2)))
    c, size, stride = 64, 56, 1
    for width, slow_filter in ((64, 1), (128, 1), (256, 3), (512, 3)):
        yield conv(c // 8, c // 4, (32, size, size), (5, 1, 1), (8, 1, 1))
        for frames, inner, before, filter in ((4, width, c + c // 4, slow_filter), (32, width // 8, c // 8, 3)):
            yield from (conv(before, inner, (frames, size, size), (filter, 1, 1)),
                        conv(inner, inner, (frames, size, size), (1, 3, 3), (1, stride, stride)))
            small = (frames, size // stride, size // stride)
            yield from (conv(inner, 4 * inner, small, 1), conv(4 * inner, inner, small, (filter, 1, 1)))
        c, size, stride = 4 * width, size // stride, 2


NETWORKS: dict[str, dict[str, tuple[Layer, ...]]] = {
    "training": {
        "resnet-18": tuple(basic_resnet()), "resnet-50": tuple(bottlenecks(64)), "vgg-16": tuple(vgg()),
        "resnext-50": tuple(bottlenecks(128, 32)), "mobilenet-v2": tuple(mobilenet_v2()), "convnext-t": tuple(convnext()),
        "yolo": tuple(yolo()), "unet-3d": tuple(unet_3d()), "shufflenet-v2": tuple(shufflenet()),
        "alexnet": tuple(alexnet()), "audio-1d": tuple(audio()),
    },
    "validation": {
        "wide-resnet-50": tuple(bottlenecks(128)), "mnasnet": tuple(mnasnet()), "hrnet-w32": tuple(hrnet()),
        "conv-tasnet": tuple(conv_tasnet()), "c3d": tuple(c3d()),
    },
    "test": {
        "repvgg": (*repvgg(48, 48, 96, 192, 1280), *repvgg(64, 128, 256, 512, 2048)), "mobilenet-v3": tuple(mobilenet_v3()),
        "ghostnet": tuple(ghostnet()), "resnest-50": tuple(resnest()), "edsr": tuple(edsr()),
        "wave-unet": tuple(wave_unet()), "slowfast": tuple(slowfast()),
    },
}
