# SPDX-License-Identifier: MIT
"""The matrix products of the networks that problem sets are drawn from: their linear layers and their attention, as facts.

A network has models of several sizes. Sizes that a user chooses, such as tokens, are not here: problem_sets.py draws them.
"""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Model:
    """One size of a network.

    linears     outputs and inputs of each linear layer
    heads       of attention, each of head_size values; 0 where there is none
    tokens      the least and the most that are multiplied at once
    """

    linears: tuple[tuple[int, int], ...]
    heads: int = 0
    head_size: int = 0
    tokens: tuple[int, int] = (1, 16384)


def gated(hidden: int, heads: int, kv_heads: int, head_size: int, ffn: int, words: int) -> Model:
    """A transformer with grouped queries and a gated feed-forward layer, whose two input products are one."""
    queries = heads * head_size
    return Model(((queries + 2 * kv_heads * head_size, hidden), (hidden, queries), (2 * ffn, hidden), (hidden, ffn),
                  (words, hidden)), heads, head_size)


def plain(hidden: int, heads: int, head_size: int, ffn: int, words: int = 0, kv_heads: int = 0,
          tokens: tuple[int, int] = (1, 16384)) -> Model:
    """A transformer with one feed-forward layer of two products."""
    inner = heads * head_size
    fused = inner + 2 * (kv_heads or heads) * head_size
    vocabulary = ((words, hidden),) if words else ()
    return Model(((fused, hidden), (hidden, inner), (ffn, hidden), (hidden, ffn), *vocabulary), heads, head_size, tokens)


def swin_stage(width: int, heads: int, positions: int) -> Model:
    """Windows of 7x7 positions; the last product merges four positions into one of twice the width."""
    return Model(((3 * width, width), (width, width), (4 * width, width), (width, 4 * width), (2 * width, 4 * width)),
                 heads, width // heads, (positions, 256 * positions))


def mixer(width: int, patches: int, across: int, channels: int) -> Model:
    """Two products along the channels, and two across the patches."""
    return Model(((channels, width), (width, channels), (across, patches), (patches, across)),
                 tokens=(patches, 128 * patches))


DEEPSEEK_V3 = Model((
    (1536, 7168), (24576, 1536), (576, 7168), (32768, 512), (7168, 16384),  # attention with latent vectors
    (36864, 7168), (7168, 18432),  # the first layers
    (4096, 7168), (7168, 2048), (256, 7168),  # an expert, and the router
    (129280, 7168)), 128, 192)
CONFORMER_L = Model((
    (1536, 512), (512, 512), (2048, 512), (512, 2048),  # attention and feed-forward
    (1024, 512), (512, 10240),  # the gated convolution's first product, and what follows the subsampling
    (2560, 640), (640, 512), (1024, 640)), 8, 64, (50, 16384))  # decoder and joint network
WIDE_AND_DEEP = Model(((1024, 1200), (512, 1024), (256, 512), (1, 256)), tokens=(16, 65536))

NETWORKS: dict[str, dict[str, tuple[Model, ...]]] = {
    "training": {
        "llama-3": (gated(4096, 32, 8, 128, 14336, 128256), gated(8192, 64, 8, 128, 28672, 128256),
                    gated(16384, 128, 8, 128, 53248, 128256)),
        "deepseek-v3": (DEEPSEEK_V3,),
        "bert-large": (plain(1024, 16, 64, 4096, 30522, tokens=(32, 32768)),),
        "gpt-3": (plain(12288, 96, 128, 49152, 50257), plain(2048, 16, 128, 8192, 50257)),
        "t5": (plain(768, 12, 64, 3072, 32128), plain(1024, 32, 128, 16384, 32128), plain(1024, 128, 128, 65536, 32128)),
        "swin-b": (swin_stage(128, 4, 3136), swin_stage(256, 8, 784), swin_stage(512, 16, 196), swin_stage(1024, 32, 49)),
    },
    "validation": {
        "gpt-neox-20b": (plain(6144, 64, 96, 24576, 50432),),
        "gemma-2-27b": (gated(4608, 32, 16, 128, 36864, 256000),),
        "mlp-mixer": (mixer(768, 196, 384, 3072), mixer(1024, 196, 512, 4096), mixer(1280, 256, 640, 5120)),
    },
    "test": {
        "falcon-40b": (plain(8192, 128, 64, 32768, 65024, kv_heads=8),),
        "bloom": (plain(14336, 112, 128, 57344, 250880), plain(4096, 32, 128, 16384, 250880)),
        "phi-2": (plain(2560, 32, 80, 10240, 51200),),
        "conformer-l": (CONFORMER_L,),
        "wide-and-deep": (WIDE_AND_DEEP,),
    },
}
