# SPDX-License-Identifier: MIT
"""Folds that tell how well a model chooses for shapes it has not seen. Shapes within twice of each other in every dimension are
neighbours, and a model never learns from a neighbour of a shape that it is judged by.

Chains of neighbours join most shapes of a set into one group, which no fold could hold. So groups are made around a shape
that has many neighbours, and what is near a held-out group, but of another, is left out of training as well.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from .._verbs import usage_error
from ..problem import Problem
from ..problem_sets import dimensions

NEAR = 1.0  # octaves


@dataclasses.dataclass(frozen=True)
class Fold:
    """Which problems a first model learns from, which say when it is to stop, all that the model may learn from, and which judge it."""

    train: np.ndarray
    stop: np.ndarray
    left: np.ndarray
    judge: np.ndarray


class Neighbours:
    """Which of some shapes are near each other."""

    def __init__(self, problems: Sequence[Problem]):
        self._shapes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.count = len(problems)
        logs = [np.log2(np.maximum(1, dimensions(problem.fields))) for problem in problems]
        for length in {len(one) for one in logs}:
            members = np.array([i for i, one in enumerate(logs) if len(one) == length])
            self._shapes[length] = members, np.stack([logs[i] for i in members])
        self._length = [len(one) for one in logs]
        self._logs = logs

    def of(self, index: int) -> np.ndarray:
        """Those near one shape, which is among them."""
        members, logs = self._shapes[self._length[index]]
        near: np.ndarray = members[(np.abs(logs - self._logs[index]) <= NEAR).all(axis=1)]
        return near

    def of_any(self, chosen: np.ndarray) -> np.ndarray:
        """Whether each shape is near any of the chosen ones."""
        found = np.zeros(self.count, bool)
        for index in np.flatnonzero(chosen):
            found[self.of(index)] = True
        return found

    def groups(self) -> np.ndarray:
        """The group of each shape: those that are left of the neighbours of a shape with many."""
        near = [self.of(index) for index in range(self.count)]
        group = np.full(self.count, -1)
        made = 0
        for index in sorted(range(self.count), key=lambda i: (-len(near[i]), i)):
            if group[index] < 0:
                group[near[index][group[near[index]] < 0]] = made
                made += 1
        return group


def _shared_out(groups: np.ndarray, parts: int, seed: int) -> np.ndarray:
    """The part of each shape, groups kept whole and parts about as large; -1 stays."""
    names, sizes = np.unique(groups[groups >= 0], return_counts=True)
    order = np.random.RandomState(seed).permutation(len(names))
    filled = np.zeros(parts, int)
    part_of = {}
    for place in order[np.argsort(-sizes[order], kind="stable")]:
        smallest = int(np.argmin(filled))
        part_of[names[place]] = smallest
        filled[smallest] += sizes[place]
    return np.array([part_of.get(name, -1) for name in groups])


def folds(problems: Sequence[Problem], splits: int, seed: int = 0) -> Iterator[Fold]:
    """So many folds, which judge every problem once."""
    if splits < 2:
        raise usage_error(f"{splits} folds; need at least 2")
    neighbours = Neighbours(problems)
    groups = neighbours.groups()
    if groups.max() < splits:
        raise usage_error(f"{len(problems)} shapes in {groups.max() + 1} groups of neighbours, too few for {splits} folds; "
                          "measure more shapes, which differ by more than twice in a dimension")
    part = _shared_out(groups, splits, seed)
    for number in range(splits):
        judge = part == number
        left = ~judge & ~neighbours.of_any(judge)
        stop = _shared_out(np.where(left, groups, -1), splits, seed + 1 + number) == 0
        train = left & ~stop & ~neighbours.of_any(stop)
        if train.any() and stop.any():
            yield Fold(train, stop, left, judge)
        else:  # too few shapes to hold any back: the trees stop at their number
            left = left if left.any() else ~judge
            yield Fold(left, np.zeros_like(stop), left, judge)
