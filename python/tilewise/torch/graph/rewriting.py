# SPDX-License-Identifier: MIT
"""A graph of ATen operations while the passes change it: its constants, the names of its layers, and what became of them."""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.fx.experimental.symbolic_shapes import statically_known_true

TYPES = (torch.float32, torch.float16, torch.bfloat16)
DEVICES = ("cpu", "cuda")

ops = torch.ops.tilewise


def value(node: Any) -> Any:
    """What a node's result looks like: a fake tensor, or None where there is no such node."""
    return node.meta.get("val") if isinstance(node, fx.Node) else None


def same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(statically_known_true(x == y) for x, y in zip(a, b))


def only_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def only_reader(node: fx.Node) -> fx.Node | None:
    """The only node that reads a result's elements; others may ask for its sizes."""
    readers = [user for user in node.users if user.target is not torch.ops.aten.sym_size.int]
    return readers[0] if len(readers) == 1 else None


def is_call(node: Any, *targets: Any) -> bool:
    return isinstance(node, fx.Node) and node.op == "call_function" and node.target in targets


def layer_with(name: str) -> str:
    """The layer that a parameter or buffer of this name belongs to, by itself or through a parametrization."""
    before, inside, _ = f".{name}".partition(".parametrizations.")
    return before[1:] if inside else name.rpartition(".")[0]


class Rewriting:
    """The graph of a GraphModule with some of its inputs known: `constants` are placeholders whose tensors never change.

    names  of parameters and buffers, by the identity of their tensors
    only   the layers that may be rewritten; None for all
    done   what became of each layer that was
    left   why a layer was not
    results  what the graph's results look like, in which order of memory for instance, and shall look like
    """

    def __init__(self, module: fx.GraphModule, constants: Mapping[fx.Node, torch.Tensor], names: Mapping[int, str],
                 only: frozenset[str] | None):
        self.graph = module.graph
        self.constants = dict(constants)
        self.only = only
        self.done: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.results = [value(node) for node in self.graph.output_node().args[0]]
        self.fake_mode = detect_fake_mode([value(node) for node in self.graph.nodes])
        self._layers = {node: layer_with(names[id(tensor)]) for node, tensor in self.constants.items() if id(tensor) in names}

    def layer_of(self, node: Any, otherwise: fx.Node) -> str:
        """The name of the layer that a constant belongs to; where it is unknown the name of a node."""
        return self._layers.get(node, otherwise.name)

    @property
    def layers(self) -> set[str]:
        """Those with constants in this graph."""
        return set(self._layers.values())

    def may_rewrite(self, layer: str) -> bool:
        return self.only is None or layer in self.only

    def call(self, target: Callable[..., Any], *args: Any, like: fx.Node) -> fx.Node:
        """A new node before another."""
        with self.graph.inserting_before(like):
            node = self.graph.call_function(target, args)
        with self.fake_mode:
            node.meta = {**like.meta, "val": target(*fx.map_arg(args, value))}
        return node

    def replace(self, old: fx.Node, new: fx.Node) -> None:
        old.replace_all_uses_with(new)
        self.graph.erase_node(old)

    def constant(self, tensor: torch.Tensor, like: fx.Node) -> fx.Node:
        """A new constant, of the same layer as another."""
        first = next(iter(self.graph.nodes))
        with self.graph.inserting_before(first):
            node = self.graph.placeholder(f"{like.name}_packed")
        node.meta["val"] = self.fake_mode.from_tensor(tensor, static_shapes=True)
        self.constants[node] = tensor
        if like in self._layers:
            self._layers[node] = self._layers[like]
        return node

    def size(self, node: fx.Node, dim: int, like: fx.Node) -> Any:
        """A size of a node's result: a number, or a node where it is only known when the graph runs."""
        size = value(node).size(dim)
        return size if isinstance(size, int) else self.call(torch.ops.aten.sym_size.int, node, dim, like=like)

    def sum_of_products(self, like: fx.Node, size: Any, factor: int, more: int) -> Any:
        """size * factor + more, of a number or a node."""
        if isinstance(size, int):
            return size * factor + more
        product = self.call(operator.mul, size, factor, like=like)
        return self.call(operator.add, product, more, like=like)

    def drop_unused(self) -> None:
        self.graph.eliminate_dead_code()
        for node in [node for node in self.constants if not node.users]:
            del self.constants[node]
            self.graph.erase_node(node)
        self.graph.lint()


def why_not(*nodes: Any) -> str | None:
    """Why no kernel of the library takes these operands, None where one may."""
    tensors = [value(node) for node in nodes if node is not None]
    if not all(isinstance(x, torch.Tensor) for x in tensors):
        return "an operand is no tensor"
    first = tensors[0]
    if first.dtype not in TYPES:
        return f"it is of {first.dtype}; need one of {', '.join(map(str, TYPES))}"
    if first.device.type not in DEVICES:
        return f"it is on {first.device}; need one of {', '.join(DEVICES)}"
    odd = next((x for x in tensors if x.dtype != first.dtype or x.device != first.device), None)
    return None if odd is None else f"its operands are of {first.dtype} on {first.device} and {odd.dtype} on {odd.device}"
