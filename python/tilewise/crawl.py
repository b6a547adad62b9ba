# SPDX-License-Identifier: MIT
"""tilewise crawl: the problems of a model, as lines that `--problems` of the other commands reads:

    tilewise crawl model.onnx --set N=8 --backward > problems.txt
    tilewise crawl torchvision.models:resnet50 --input 8x3x224x224

An ONNX file needs the package onnx; a file of torch.export, and a function that makes a model, need torch. What multiplies and
cannot be mapped is listed with its reason.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._crawl_onnx import crawl_onnx
from ._crawl_products import Fields, Found, Unmappable, gradients
from ._crawl_torch import crawl_exported
from ._library import TilewiseError
from ._verbs import Parser, run, usage_error
from .problem import Problem

READERS = {".onnx": crawl_onnx, ".pt2": crawl_exported}  # by the suffix of the file


@dataclasses.dataclass
class Crawled:
    """counts    how often the model computes each problem, in the order of first use
    unmapped    the operations that multiply and are no problem, each with its reason"""

    network: str
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    unmapped: list[Found] = dataclasses.field(default_factory=list)

    def add(self, found: Found, backward: bool, dtype: str | None) -> None:
        """Counts the operation and, with `backward`, its gradients; lists what is no problem."""
        try:
            if found.fields is None:
                raise Unmappable(found.reason)
            fields = found.fields | ({"dtype": dtype} if dtype else {})
            self._count(fields)
            for gradient in gradients(fields) if backward else ():
                self._count(gradient)
        except (Unmappable, TilewiseError) as error:
            self.unmapped.append(Found(found.node, found.operation, None, str(error)))

    def _count(self, fields: Fields) -> None:
        text = Problem(fields).text
        self.counts[text] = self.counts.get(text, 0) + 1

    def to_dict(self) -> dict[str, Any]:
        return {"network": self.network, "problems": [{"problem": text, "count": n} for text, n in self.counts.items()],
                "unmapped": [{"node": one.node, "operation": one.operation, "reason": one.reason} for one in self.unmapped]}

    def __str__(self) -> str:
        lines = [f"{text}  # {self.network}, {count}x" for text, count in self.counts.items()]
        lines += [f"# not mapped: {one.operation} {one.node}: {one.reason}" for one in self.unmapped]
        return "\n".join(" ".join(line.splitlines()) for line in lines)  # a model may name its nodes as it likes


def crawl(path: str, *, sizes: Mapping[str, int] | None = None, backward: bool = False, dtype: str | None = None) -> Crawled:
    """The problems of a model's file (.onnx, or .pt2 of torch.export).

    sizes       of the model's symbols: {"N": 8}
    backward    adds the two gradients of each problem
    dtype       the type that the model would be run in; its own unless given
    """
    suffix = pathlib.Path(path).suffix
    if suffix not in READERS:
        raise ValueError(f"{path}: a model's file ends in {' or '.join(READERS)}; a function that makes a model is MODULE:FUNCTION")
    if not pathlib.Path(path).is_file():
        raise ValueError(f"{path}: no such file")
    found: Iterable[Found] = READERS[suffix](path, sizes or {})
    crawled = Crawled(pathlib.Path(path).stem)
    for one in found:
        crawled.add(one, backward, dtype)
    return crawled


def _sizes(words: Sequence[str]) -> dict[str, int]:
    sizes = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name or not value.isdecimal() or int(value) < 1:
            raise ValueError(f"--set takes NAME=SIZE with a size of at least 1, such as N=8, not {word!r}")
        sizes[name] = int(value)
    return sizes


def _is_function(model: str) -> bool:
    return ":" in model and pathlib.Path(model).suffix not in READERS


def _crawled(given: argparse.Namespace) -> Crawled:
    if not _is_function(given.model):
        if given.input:
            raise ValueError(f"--input is for MODULE:FUNCTION; the file {given.model} has sizes of its own, and --set for its symbols")
        return crawl(given.model, sizes=_sizes(given.set), backward=given.backward, dtype=given.dtype)
    if given.set:
        raise ValueError(f"--set is for the symbols of a file; {given.model} takes --input")
    from ._crawl_module import crawl_function

    return Crawled(*crawl_function(given.model, given.input, backward=given.backward, dtype=given.dtype))


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="tilewise crawl", description="Print the problems of a model, one a line.")
    parser.add_argument("model", metavar="MODEL", help="an ONNX file (.onnx), one of torch.export (.pt2), or MODULE:FUNCTION, "
                        "which makes a model of torch")
    parser.add_argument("--set", metavar="NAME=SIZE", action="append", default=[], help="the size of a file's symbol (repeatable)")
    parser.add_argument("--input", metavar="SIZES", action="append", default=[],
                        help="the sizes of an argument of MODULE:FUNCTION's model, such as 8x3x224x224, or 8x128:int64 of "
                             "another type than the model's (repeatable)")
    parser.add_argument("--backward", action="store_true", help="add the two gradients of each problem")
    parser.add_argument("--dtype", help="the type the model would be run in; its own unless given")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(words)
    try:
        crawled = _crawled(given)
    except ValueError as error:
        raise usage_error(str(error)) from None
    if given.json or crawled.counts or crawled.unmapped:
        print(json.dumps(crawled.to_dict()) if given.json else crawled)
    if not crawled.counts:
        print(f"tilewise crawl: no operation of {given.model} is a problem", file=sys.stderr)
    if crawled.unmapped:
        print(f"tilewise crawl: {len(crawled.unmapped)} operations that multiply are not mapped; they are listed at the end",
              file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(run("crawl", sys.argv[1:]))
