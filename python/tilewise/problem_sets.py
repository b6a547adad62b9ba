# SPDX-License-Identifier: MIT
"""The problem sets that kernels are measured on, as generators: `python -m tilewise.problem_sets problems` writes their text.

A set is named after an operation and a use: gemm_training, forward_validation, bwd_weight_test and so on; cpu_gemm_training and
its kin are small enough for one thread of a CPU. Training has networks, random shapes, neighbours of both and the classes of
shapes that are hard; validation and test have networks only, none of them in another use, and no shape near one of training:
within 1.25 times of it in every dimension.

A set is the same on every platform and with every version of Python: what is drawn comes from random.random() and whole
numbers alone.
"""
from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _conv_classes, _product_classes
from ._draw import Draw, Fields
from .problem import Problem

USES = ("training", "validation", "test")
OPS = {"gemm": "gemm", "forward": "conv_fwd", "bwd_data": "conv_bwd_data", "bwd_weight": "conv_bwd_weight"}
TRAINING_SIZES = {"gemm": 2400, "forward": 1800, "bwd_data": 1000, "bwd_weight": 1550}
UNSEEN_SIZE = 300
CPU_SIZES = {"training": 300, "validation": 60, "test": 60}
FIRST_SEED = 2200
MOST_DRAWS = 1000  # for one problem, before a set is found impossible

# Percent of a training set; hard classes are the rest. A third of the random shapes are thin.
LAYERS, RANDOM, NEIGHBOURS = 45, 25, 15
THIN_EVERY, EPILOGUE_EVERY = 3, 10
EPILOGUES = ("bias", "bias+gelu")  # each is one more binary of every kernel


@dataclasses.dataclass(frozen=True)
class ProblemSet:
    """The sources of a set. `key` is the operation in the set's name."""

    name: str
    key: str
    use: str
    size: int
    seed: int
    dtype: str
    most_flops: float
    most_bytes: float

    @property
    def op(self) -> str:
        return OPS[self.key]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A problem's text, and the network or class it comes from."""

    problem: str
    family: str


def _all_sets() -> Iterator[ProblemSet]:
    seed = FIRST_SEED
    for prefix, dtype, most_flops, most_bytes in (("", "bf16", 1e12, 2.0**30), ("cpu_", "fp32", 2e9, 2.0**28)):
        for key in OPS:
            for use in USES:
                size = CPU_SIZES[use] if prefix else TRAINING_SIZES[key] if use == "training" else UNSEEN_SIZE
                yield ProblemSet(f"{prefix}{key}_{use}", key, use, size, seed, dtype, most_flops, most_bytes)
                seed += 1


SETS = {a_set.name: a_set for a_set in _all_sets()}


# ---- shapes near others --------------------------------------------------------------------------------------------


def dimensions(fields: Fields) -> tuple[int, ...]:
    """The shape of a problem, for comparing shapes. The padding of a convolution is not part of it."""
    if fields["op"] == "gemm":
        return tuple(fields[name] for name in ("m", "n", "k")) + (fields.get("batch", 1),)
    extents = [int(x) for name in ("in", "filter", "stride", "dilation") for x in str(fields[name]).split("x")]
    return tuple(fields[name] for name in ("n", "c", "k", "g")) + tuple(extents)


def are_near(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether no dimension of one is more than 1.25 times that of the other."""
    return len(a) == len(b) and all(4 * max(x, y) <= 5 * min(x, y) for x, y in zip(a, b))


class NearShapes:
    """Finds whether a shape is near one of many. They lie in cells by their second and third dimension; each cell is 1.25
    times as wide as the one before, so that shapes near each other are in neighbouring cells."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    @staticmethod
    def _cell(size: int) -> int:
        cell, least, divisor = 0, 5, 4
        while least <= size * divisor:
            cell, least, divisor = cell + 1, least * 5, divisor * 4
        return cell

    def add(self, shape: tuple[int, ...]) -> None:
        self._cells.setdefault((self._cell(shape[1]), self._cell(shape[2])), []).append(shape)

    def __contains__(self, shape: tuple[int, ...]) -> bool:
        row, column = self._cell(shape[1]), self._cell(shape[2])
        return any(are_near(shape, other) for i in (row - 1, row, row + 1) for j in (column - 1, column, column + 1)
                   for other in self._cells.get((i, j), ()))


# ---- generating ----------------------------------------------------------------------------------------------------


class _Generation:
    """A set that is being drawn: what it has, and what it may not have."""

    def __init__(self, a_set: ProblemSet, others: NearShapes | None):
        self.set = a_set
        self.draw = Draw(a_set.seed)
        self.others = others
        self.entries: list[Entry] = []
        self.drawn: list[Fields] = []
        self._texts: set[str] = set()
        self._epilogues: dict[int, str] = {}  # by the number of the problem
        if a_set.use == "training" and a_set.key != "bwd_weight":  # whose output has no channels for a bias
            for first in range(0, a_set.size, EPILOGUE_EVERY):
                self._epilogues[first + self.draw.below(EPILOGUE_EVERY)] = self.draw.one_of(EPILOGUES)

    def add(self, count: int, make: Callable[[], tuple[str, Fields]]) -> None:
        """So many problems of those that make() draws, leaving out what is too large, there already or too near."""
        end = len(self.entries) + count
        draws = 0
        while len(self.entries) < end:
            if (draws := draws + 1) > MOST_DRAWS * count:
                raise RuntimeError(f"{self.set.name}: {len(self.entries)} of {end} problems after {draws} draws")
            family, fields = make()
            epilogue = self._epilogues.get(len(self.entries), "")
            problem = Problem({"op": self.set.op, "dtype": self.set.dtype, **fields,
                               **({"epilogue": epilogue} if epilogue else {})})
            if not self._may_add(problem):
                continue
            self._texts.add(problem.text)
            self.drawn.append(fields)
            self.entries.append(Entry(problem.text, family))

    def _may_add(self, problem: Problem) -> bool:
        fits = problem.flops <= self.set.most_flops and problem.bytes <= self.set.most_bytes
        if not fits or problem.text in self._texts:
            return False
        return self.others is None or dimensions(problem.fields) not in self.others


def _generate(a_set: ProblemSet, others: NearShapes | None) -> list[Entry]:
    """In an order in which the first few are a fair sample."""
    generation = _Generation(a_set, others)
    draw = generation.draw
    classes: Any = _product_classes if a_set.key == "gemm" else _conv_classes
    networks = classes.NETWORKS[a_set.use]

    def in_turn(names: dict[str, Any]) -> str:  # so that each has its share, however few of its draws fit
        return list(names)[len(generation.entries) % len(names)]

    def network() -> tuple[str, Fields]:
        name = in_turn(networks)
        return name, classes.from_network(draw, draw.one_of(networks[name]))

    def hard() -> tuple[str, Fields]:
        name = in_turn(classes.HARD)
        return name, classes.HARD[name](draw)

    if a_set.use != "training":
        generation.add(a_set.size, network)
        return draw.shuffled(generation.entries)
    layers, randoms, neighbours = (a_set.size * percent // 100 for percent in (LAYERS, RANDOM, NEIGHBOURS))
    generation.add(layers, network)
    generation.add(randoms - randoms // THIN_EVERY, lambda: ("random", classes.random(draw)))
    generation.add(randoms // THIN_EVERY, lambda: ("thin", classes.thin(draw)))
    models = generation.drawn[:]
    generation.add(neighbours, lambda: ("off-by-one", classes.neighbour(draw, draw.one_of(models))))
    generation.add(a_set.size - len(generation.entries), hard)
    return draw.shuffled(generation.entries)


def generate_all() -> dict[str, list[Entry]]:
    """Every set. Those of training come first: the others keep away from all of them that have the same kind of shape."""
    done: dict[str, list[Entry]] = {}
    training = {True: NearShapes(), False: NearShapes()}  # of products, of convolutions
    for a_set in SETS.values():
        if a_set.use == "training":
            done[a_set.name] = _generate(a_set, None)
            for entry in done[a_set.name]:
                training[a_set.key == "gemm"].add(dimensions(Problem(entry.problem).fields))
    for a_set in SETS.values():
        if a_set.use != "training":
            done[a_set.name] = _generate(a_set, training[a_set.key == "gemm"])
    return {name: done[name] for name in SETS}


def problems_hash(entries: Sequence[Entry]) -> str:
    """The hash of the problems in their order, one a line, as `tilewise problems` prints it."""
    return hashlib.sha256("".join(f"{entry.problem}\n" for entry in entries).encode()).hexdigest()[:16]


def set_text(name: str, entries: Sequence[Entry]) -> str:
    """The file of a set, as `--problems` reads it."""
    a_set = SETS[name]
    families = ", ".join(sorted({entry.family for entry in entries}))
    lines = ["# SPDX-License-Identifier: MIT", f"# {name}: {len(entries)} problems, seed {a_set.seed}, hash "
             f"{problems_hash(entries)}; written by python -m tilewise.problem_sets", f"# families: {families}"]
    return "\n".join(lines + [f"{entry.problem}  # {entry.family}" for entry in entries]) + "\n"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or not pathlib.Path(arguments[0]).is_dir():
        print("usage: python -m tilewise.problem_sets FOLDER   (writes NAME.txt of every set there)", file=sys.stderr)
        return 2
    for name, entries in generate_all().items():
        (pathlib.Path(arguments[0]) / f"{name}.txt").write_text(set_text(name, entries), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
