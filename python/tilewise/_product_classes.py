# SPDX-License-Identifier: MIT
"""Classes of GEMM problems that problem_sets.py draws from: layers of networks, random shapes, thin ones, neighbours of others,
and those that are hard to be fast on. A class is a function from random choices to the fields of a problem.
"""
from __future__ import annotations

from collections.abc import Callable

from ._draw import ALIGNMENTS, MOST_BATCH, Draw, Fields
from ._network_products import NETWORKS, Model

__all__ = ["HARD", "NETWORKS", "from_network", "neighbour", "random", "thin"]

# Weighted by how often users have them; the first kind stores C by rows.
BY_ROWS = ("rcr",) * 6 + ("rrr",) * 4 + ("crr",) * 3 + ("ccr",) * 3
LAYOUTS = (*BY_ROWS, "rrc", "rcc", "crc", "ccc")


def from_network(draw: Draw, model: Model) -> Fields:
    if model.heads and draw.chance(15):
        return attention(draw, model)
    outputs, inputs = draw.one_of(model.linears)
    devices = draw.one_of((1, 1, 2, 4, 8)) if min(outputs, inputs) >= 2048 else 1  # that share the layer
    if draw.chance(50):
        outputs //= devices
    else:
        inputs //= devices
    tokens = draw.count(*model.tokens)
    forward = {"m": tokens, "n": outputs, "k": inputs, "layout": "rcr"}
    return draw.one_of((
        forward, forward,
        {"m": outputs, "n": tokens, "k": inputs, "layout": "rcc"},  # the same with the weights first
        {"m": tokens, "n": inputs, "k": outputs, "layout": "rrr"},  # the gradient of the inputs
        {"m": outputs, "n": inputs, "k": tokens, "layout": "crr"},  # the gradient of the weights
    ))


def attention(draw: Draw, model: Model) -> Fields:
    """Queries times keys, or weights times values: a product for each head."""
    batch, queries, keys = draw.count(1, MOST_BATCH), draw.count(1, 4096), draw.count(16, 4096)
    if draw.chance(50):
        queries = keys
    return {"batch": batch, "m": queries} | draw.one_of((
        {"n": keys, "k": model.head_size, "layout": "rcr"}, {"n": model.head_size, "k": keys, "layout": "rrr"}))


def random(draw: Draw) -> Fields:
    multiple = draw.one_of(ALIGNMENTS)
    sizes = {name: draw.log_between(16, 16384, multiple) for name in "mnk"}
    batch = {"batch": draw.log_between(2, MOST_BATCH)} if draw.chance(20) else {}
    return {**sizes, **batch, **draw.align(), "layout": draw.one_of(LAYOUTS)}


def thin(draw: Draw) -> Fields:
    """One to eight rows or columns."""
    return random(draw) | {draw.one_of("mn"): draw.between(1, 8)}


def neighbour(draw: Draw, fields: Fields) -> Fields:
    """Another problem with sizes that are one more or one less, at least one of them."""
    changed = fields
    while changed == fields:
        changed = fields | {name: max(1, fields[name] + draw.between(-1, 1)) for name in "mnk"}
    return changed


def one_column(draw: Draw) -> Fields:
    return {"m": draw.log_between(1024, 262144), "n": draw.between(1, 4), "k": draw.log_between(64, 4096, 8)}


def short_k(draw: Draw) -> Fields:
    return {"m": draw.log_between(512, 8192), "n": draw.log_between(512, 8192), "k": draw.between(9, 63)}


def odd(draw: Draw) -> Fields:
    return {name: draw.log_between(32, 8192, 2) + 1 for name in "mnk"}


def thin_long(draw: Draw) -> Fields:
    return {"m": draw.log_between(512, 8192), "n": 8 * draw.between(2, 16), "k": draw.log_between(1024, 16384, 8)}


def middle_rows(draw: Draw) -> Fields:
    return {"m": draw.between(129, 640), "n": draw.log_between(1024, 16384, 64), "k": draw.log_between(512, 16384, 64)}


def by_rows(shape: Callable[[Draw], Fields]) -> Callable[[Draw], Fields]:
    return lambda draw: {**shape(draw), "layout": draw.one_of(BY_ROWS)}


HARD = {"one-column": by_rows(one_column), "short-k": by_rows(short_k), "odd": by_rows(odd),
        "thin-long": by_rows(thin_long), "middle-rows": by_rows(middle_rows)}
