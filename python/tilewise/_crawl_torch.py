# SPDX-License-Identifier: MIT
"""The products and convolutions of a file of torch.export, from the sizes and strides that its graph has."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._crawl_products import Fields, Found, Unmappable, convolution, product, transposed

DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "bf8",
          "int8": "int8"}
# Parts of the names of operations that multiply, and that no problem is the same as.
OTHER_PRODUCTS = ("attention", "einsum", "lstm", "gru", "rnn", "dot", "cdist", "_mm", "conv1d", "conv2d", "conv3d",
                  "conv_")


class _Sizes:
    """Sizes and strides as numbers; symbols stand for what the caller gave."""

    def __init__(self, given: Mapping[str, int]):
        self.given, self.used = given, set[str]()

    def number(self, size: Any) -> int:
        if isinstance(size, int):
            return size
        expression = size.node.expr
        names = {symbol: str(symbol) for symbol in expression.free_symbols}
        self.used |= set(names.values())
        missing = sorted(name for name in names.values() if name not in self.given)
        if missing:
            raise Unmappable(f"a size is not known: {expression}; give --set {missing[0]}=N")
        return int(expression.subs({symbol: self.given[name] for symbol, name in names.items()}))

    def shape(self, node: Any) -> list[int]:
        return [self.number(size) for size in node.meta["val"].shape]

    def strides(self, node: Any) -> list[int]:
        return [self.number(stride) for stride in node.meta["val"].stride()]


def _dtype(node: Any) -> str:
    word = str(node.meta["val"].dtype).removeprefix("torch.")
    if word not in DTYPES:
        raise Unmappable(f"it is of type {word}")
    return DTYPES[word]


def _convolution(sizes: _Sizes, node: Any) -> Fields:
    x, w, bias, stride, padding, dilation, is_transposed, _, groups = node.args
    rank = len(sizes.shape(x)) - 2
    stride, padding, dilation = ([*values] * (rank if len(values) == 1 else 1) for values in (stride, padding, dilation))
    options = {"stride": stride, "pads": [(pad, pad) for pad in padding], "dilation": dilation, "groups": groups,
               "bias": bias is not None, "channels_last": sizes.strides(x)[1] == 1 and sizes.shape(x)[1] > 1}
    if is_transposed:
        return transposed(_dtype(x), sizes.shape(x), sizes.shape(w), sizes.shape(node), **options)
    return convolution(_dtype(x), sizes.shape(x), sizes.shape(w), **options)


def _lie(shape: list[int], strides: list[int]) -> tuple[str, int]:
    """The letter of a matrix's layout and the distance of its rows as stored, 0 where they are packed."""
    (rows, columns), (down, across) = shape[-2:], strides[-2:]
    if across == 1 or columns == 1:
        return "r", 0 if down == columns or rows == 1 else down
    if down == 1 or rows == 1:
        return "c", 0 if across == rows else across
    raise Unmappable(f"a matrix of {rows}x{columns} whose elements are {down} and {across} apart")


def _product(sizes: _Sizes, node: Any) -> Fields:
    *added, a, b = node.args[:3] if node.target._opname in ("addmm", "baddbmm") else node.args[:2]
    if node.kwargs.get("beta", 1) != 1:  # alpha is an argument, whatever its value
        raise Unmappable("what it adds has a factor, beta")
    shapes, letters, more = [], "", {}
    for name, operand in zip("ab", (a, b)):
        shape, strides = sizes.shape(operand), sizes.strides(operand)
        if len(shape) == 1:  # the vector of mv
            shape, strides = [*shape, 1], [*strides, 1]
        letter, gap = _lie(shape, strides)
        more |= {f"ld{name}": gap} if gap else {}
        if len(shape) == 3 and shape[0] > 1 and strides[0] != shape[1] * shape[2]:
            more[f"batch_stride_{name}"] = strides[0]
        shapes.append(shape)
        letters += letter
    fields = product(_dtype(a), *shapes, layout=letters + "r") | more
    if not added:
        return fields
    term, result = sizes.shape(added[0]), sizes.shape(node)
    if term[-1] == result[-1] and all(size == 1 for size in term[:-1]) and len(result) == 2:
        return fields | {"epilogue": "bias"}
    if term == result:
        return fields | {"d": "add"}
    raise Unmappable(f"adds a tensor of {term} to a result of {result}")


def crawl_exported(path: str, given: Mapping[str, int]) -> Iterator[Found]:
    import torch

    try:
        program = torch.export.load(path).run_decompositions()
    except Exception as error:  # whatever a file that is something else leads to
        raise ValueError(f"{path}: no file of this version of torch.export: {error}") from None
    aten = torch.ops.aten
    mapped = {aten.convolution.default: _convolution, aten.addmm.default: _product, aten.mm.default: _product,
              aten.bmm.default: _product, aten.baddbmm.default: _product, aten.mv.default: _product}
    sizes = _Sizes(given)
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        target = node.target
        known = isinstance(target, torch._ops.OpOverload)
        name = target._opname if known else getattr(target, "__name__", str(target))
        try:
            if target in mapped:
                yield Found(node.name, name, mapped[target](sizes, node))
            elif known and target.namespace not in ("aten", "prims"):
                raise Unmappable(f"an operation of {target.namespace}")
            elif isinstance(target, torch._ops.HigherOrderOperator):
                raise Unmappable("its body is not looked into")
            elif known and any(part in name for part in OTHER_PRODUCTS):
                raise Unmappable("no problem computes the same")
        except Unmappable as error:
            yield Found(node.name, name, None, str(error))
    for name in given:
        if name not in sizes.used:
            raise ValueError(f"--set {name}: the model has no such symbol; it has {', '.join(sorted(sizes.used)) or 'none'}")
