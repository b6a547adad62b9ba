# SPDX-License-Identifier: MIT
"""Copies that only change the order of memory, as attention makes them around its products. The views and permutations between
two results are looked at as one: where that is a view, the copies in between go. A linear layer takes its rows in the order in
which they lie, and the permutation follows it.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence

import torch
from torch import fx

from ..order import Axis, Moved, is_movement, moved, size_of
from ..rewriting import Rewriting, is_call, ops, value

aten = torch.ops.aten


def run(graph: Rewriting) -> None:
    changed: set[fx.Node] = set()  # results whose strides are not those that were traced
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        for given in [] if is_movement(node) else node.all_input_nodes:
            straight = _straightened(graph, node, given) if is_movement(given) else None
            if straight is not None:
                node.replace_input_with(given, straight)
                changed.add(straight)
        _follow(graph, node, changed)
        if is_call(node, ops.linear.default):
            _take_rows_as_they_lie(graph, node, changed)
    graph.graph.eliminate_dead_code()  # what is left over would count as users


def _is_attention(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._opname.startswith("_scaled_dot_product")


def _is_elementwise(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and isinstance(value(node), torch.Tensor) and (
        torch.Tag.pointwise in node.target.tags or node.target is torch.ops.prims.convert_element_type.default)


def _strides(result: object) -> list[object]:
    tensors = result if isinstance(result, (tuple, list)) else [result]
    return [tuple(map(size_of, x.stride())) for x in tensors if isinstance(x, torch.Tensor)]


def _follow(graph: Rewriting, node: fx.Node, changed: set[fx.Node]) -> None:
    """What a result looks like where one that it is made of has changed its strides."""
    if not any(given in changed for given in node.all_input_nodes):
        return
    if not (is_movement(node) or _is_elementwise(node) or _is_attention(node) or is_call(node, operator.getitem)):
        return
    if is_call(node, aten.view.default, aten._unsafe_view.default):
        node.target = aten.reshape.default
    with graph.fake_mode:
        new = node.target(*fx.map_arg(node.args, value), **fx.map_arg(node.kwargs, value))  # type: ignore[operator]
    if _strides(new) != _strides(value(node)):
        changed.add(node)
    node.meta["val"] = new


def _straightened(graph: Rewriting, reader: fx.Node, given: fx.Node) -> fx.Node | None:
    """An operand without the copies on its way, where they are not needed."""
    x = moved(given).joined()
    if x.base is given:
        return None
    if x.is_in_order() and not x.copied:
        return x.base
    if not x.copied or not x.is_view():
        return None
    if _is_elementwise(reader) or (_is_attention(reader) and x.dims[-1] and x.dims[-1][0].stride == 1):
        return _made(graph, x, given)
    return None


def _made(graph: Rewriting, x: Moved, like: fx.Node) -> fx.Node | None:
    """The node that moves the base's elements so. None where more than one size is not known yet."""
    node = x.base

    def view(node: fx.Node, sizes: list[object]) -> fx.Node | None:
        if sizes == [size_of(size) for size in value(node).shape]:
            return node
        if sum(not isinstance(size, int) for size in sizes) > 1:
            return None
        known = [size if isinstance(size, int) else -1 for size in sizes]
        return graph.call(aten.reshape.default, node, known, like=like)

    result = view(node, [axis.size for axis in x.axes])
    if result is None:
        return None
    for at in reversed(range(len(x.axes))):
        if x.axes[at] in x.taken:
            result = graph.call(aten.select.int, result, at, x.taken[x.axes[at]], like=like)
    left = [axis for axis in x.axes if axis not in x.taken]
    order = [left.index(axis) for dim in x.dims for axis in dim]
    if order != list(range(len(order))):
        result = graph.call(aten.permute.default, result, order, like=like)
    return view(result, x.shape())


def _rows_as_they_lie(x: Moved, columns: Sequence[Axis]) -> list[Axis] | None:
    """The axes of the rows of a matrix in the order of memory. None where a kernel cannot read them so."""
    rows = [axis for dim in x.dims[:-1] for axis in dim]
    if not rows or sum(not isinstance(axis.stride, int) for axis in rows) > 1:
        return None
    rows.sort(key=lambda axis: axis.stride if isinstance(axis.stride, int) else float("inf"), reverse=True)
    step: object = 1
    for axis in reversed(columns):
        if axis.stride != step:
            return None
        step = axis.stride * axis.size
    if isinstance(rows[-1].stride, int) and isinstance(step, int) and rows[-1].stride < step:
        return None
    even = all(outer.stride == inner.stride * inner.size for outer, inner in zip(rows, rows[1:]))
    return rows if even else None


def _take_rows_as_they_lie(graph: Rewriting, node: fx.Node, changed: set[fx.Node]) -> None:
    given, weight, bias, d, activation = node.args
    x = moved(given).joined()
    rows = _rows_as_they_lie(x, x.dims[-1]) if d is None and x.dims else None
    before = [axis for dim in x.dims[:-1] for axis in dim]
    if rows is None or (rows == before and not x.copied):
        return
    matrix = _made(graph, Moved(x.base, x.axes, x.taken, (*[(axis,) for axis in rows], x.dims[-1])), node)
    sizes = [size_of(size) for size in value(node).shape]
    if matrix is None or sum(not isinstance(size, int) for size in sizes) > 1:
        return
    new = graph.call(node.target, matrix, weight, bias, d, activation, like=node)
    new.meta["layer"] = node.meta["layer"]
    result = new
    if rows != before:
        result = graph.call(aten.permute.default, new, [*[rows.index(axis) for axis in before], len(rows)], like=node)
    if [size_of(size) for size in value(result).shape] != sizes:
        result = graph.call(aten.reshape.default, result, [size if isinstance(size, int) else -1 for size in sizes], like=node)
    graph.replace(node, result)
    changed.add(result)
