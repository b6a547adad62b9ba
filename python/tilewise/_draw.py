# SPDX-License-Identifier: MIT
"""Random choices for problem sets, the same on every platform and with every version of Python."""
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

Fields = dict[str, Any]  # of a problem, as in its JSON form (docs/problems.md)
T = TypeVar("T")

MOST_BATCH = 256
ALIGNMENTS = (1, 2, 4, 8, 16)


class Draw:
    """Needs random() alone, whose values every version of Python keeps, and whole numbers."""

    def __init__(self, seed: int):
        self._source = random.Random(seed)

    def below(self, count: int) -> int:
        return int(self._source.random() * count)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def log_between(self, least: int, most: int, multiple: int = 1) -> int:
        """A multiple of `multiple`; each octave is as likely as another. Without a logarithm: its last bit is the platform's."""
        while True:
            octave = self.between(least.bit_length() - 1, most.bit_length() - 1)
            size = ((1 << octave) + self.below(1 << octave)) // multiple * multiple
            if least <= size <= most:
                return size

    def count(self, least: int, most: int) -> int:
        """So many tokens or images: half of the time a power of two, as users have them."""
        size = self.log_between(least, most)
        return max(least, 1 << (size.bit_length() - 1)) if self.chance(50) else size

    def align(self) -> Fields:
        """A tenth of problems says that pointers are multiples of less than 16 bytes."""
        return {"align": self.one_of(ALIGNMENTS[:-1])} if self.chance(10) else {}

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        for i in range(len(left) - 1, 0, -1):
            j = self.below(i + 1)
            left[i], left[j] = left[j], left[i]
        return left
