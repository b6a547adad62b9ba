# SPDX-License-Identifier: MIT
"""The rewritten graph traced once more, for Inductor: what the passes have left is decomposed, convolutions with packed weights
get and give channels-last memory, and those of one tap become products.

ATen's activations and BatchNorm are kept whole until then, so that the passes find them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .encoder_layer import encoder_layer
from .passes.pack_weights import FORMATS
from .rewriting import Rewriting, ops, value

aten = torch.ops.aten
Table = dict[Any, Callable[..., Any]]

_KEPT = (aten._native_batch_norm_legit_no_training, aten.gelu, aten.silu, aten.hardswish, aten.hardtanh, aten.relu,
         aten.sigmoid, aten.tanh)
# Several operations each, of which Inductor makes one loop again. Where nothing compiles them, ATen's own kernels are faster.
_ONE_LOOP = (aten.native_layer_norm, aten.native_layer_norm_backward, aten.native_group_norm, aten.native_group_norm_backward,
             aten._softmax, aten._softmax_backward_data, aten._log_softmax, aten._log_softmax_backward_data, aten.gelu_backward,
             aten.silu_backward, aten.hardswish_backward, aten.hardsigmoid, aten.hardsigmoid_backward, aten.leaky_relu,
             aten.leaky_relu_backward, aten.elu, aten.elu_backward, aten.softplus, aten.mish)


def decompositions(compiles: bool) -> Table:
    """Inductor's table without what the passes look for, and with what hides it. `compiles`: whether Inductor has what is left."""
    packets = _KEPT if compiles else (*_KEPT, *_ONE_LOOP)
    kept = {getattr(packet, name) for packet in packets for name in packet.overloads()}
    table = {op: rule for op, rule in _inductor_decompositions().items() if op not in kept}
    return {**table, aten._transformer_encoder_layer_fwd.default: encoder_layer}


def _inductor_decompositions() -> Table:
    from torch._inductor.decomposition import select_decomp_table  # it is slow to import, and not everyone compiles
    return select_decomp_table()


def lower(module: fx.GraphModule, graph: Rewriting, decompose: bool) -> fx.GraphModule:
    """The graph traced once more. `decompose`: what is not ours in the operations that Inductor knows."""
    inputs = module.graph.find_nodes(op="placeholder")
    packed = {node.name for node in graph.constants}

    def run(*args: Any) -> list[Any]:
        outputs = _Lowering(module, packed).run(*args)
        return [_laid_out_as(output, like) for output, like in zip(outputs, graph.results)]

    table = _inductor_decompositions() if decompose else {}
    with graph.fake_mode, enable_python_dispatcher(), torch.no_grad(), torch.fx.traceback.preserve_node_meta():
        lowered = make_fx(run, decomposition_table=table)(*map(value, inputs))
    lowered.graph.output_node().meta.update(module.graph.output_node().meta)
    lowered.meta.update(module.meta)
    lowered.graph.eliminate_dead_code()
    lowered.recompile()
    return lowered


class _Lowering(fx.Interpreter):
    def __init__(self, module: fx.GraphModule, packed: set[str]):
        super().__init__(module)
        self._packed = packed
        self._node: fx.Node | None = None

    def run_node(self, n: fx.Node) -> Any:
        self._node = n
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target is aten.view.default:  # what it views may be channels-last by now
            return aten.reshape.default(*args, **kwargs)
        if target is aten.clone.default and self._is_in_order(args[0], kwargs):
            return args[0]
        weight = self._node.args[1] if self._node is not None and len(self._node.args) > 1 else None
        if target is ops.conv.default and isinstance(weight, fx.Node) and weight.name in self._packed:
            return _conv(*args)
        return super().call_function(target, args, kwargs)


    def _is_in_order(self, x: torch.Tensor, kwargs: dict[str, Any]) -> bool:
        """Whether a copy changes nothing: made for the order of memory alone, of what has this order by now."""
        order = kwargs.get("memory_format")
        assert self._node is not None
        source = self._node.args[0]
        may_go = isinstance(source, fx.Node) and source.op == "call_function" and not any(
            user.op == "output" for user in self._node.users)
        return may_go and order not in (None, torch.preserve_format) and x.is_contiguous(memory_format=order)


def _is_channels_last(x: torch.Tensor) -> bool:
    """By its strides: torch's own answer is not always known where a size is not."""
    step: Any = 1
    for dim in (1, *range(x.dim() - 1, 1, -1), 0):
        if not statically_known_true(x.size(dim) == 1) and not statically_known_true(x.stride(dim) == step):
            return False
        step = step * x.size(dim)
    return True


def _channels_last(x: torch.Tensor | None) -> torch.Tensor | None:
    """x in channels-last memory, copied where it is not."""
    if x is None or x.dim() not in FORMATS or _is_channels_last(x):
        return x
    return x.clone(memory_format=FORMATS[x.dim()])


def _conv(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, d: torch.Tensor | None, stride: list[int],
          before: list[int], after: list[int], dilation: list[int], groups: int, activation: str) -> torch.Tensor:
    x, d = _channels_last(x), _channels_last(d)
    one_tap = all(size == 1 for size in (*w.shape[2:], *stride, groups)) and not any((*before, *after))
    if not one_tap or x.dim() not in FORMATS:
        return ops.conv.default(x, w, bias, d, stride, before, after, dilation, groups, activation)
    dims = x.dim()
    last, first = [0, *range(2, dims), 1], [0, dims - 1, *range(1, dims - 1)]
    y = ops.linear.default(x.permute(last), w.flatten(1), bias, None if d is None else d.permute(last), activation)
    return y.permute(first)


def _laid_out_as(output: Any, like: Any) -> Any:
    """An output in the memory order that the original graph gives it."""
    if not isinstance(output, torch.Tensor) or not isinstance(like, torch.Tensor) or output.layout != torch.strided:
        return output
    strides, wanted = (tuple(map(_as_traced, x.stride())) for x in (output, like))
    if strides == wanted:
        return output
    if all(isinstance(size, int) for size in (*like.shape, *like.stride())):
        return aten.copy.default(output.new_empty_strided(like.shape, like.stride()), output)
    order = sorted(range(like.dim()), key=wanted.__getitem__, reverse=True)  # symbols of the original are none of this graph's
    return output.permute(order).clone(memory_format=torch.contiguous_format).permute(
        [order.index(dim) for dim in range(like.dim())])


def _as_traced(size: Any) -> int:
    """A size as it is for the inputs that the graph is traced with, or any where that is not known."""
    if isinstance(size, int):
        return size
    node = size.node
    return int(node.hint) if node.has_hint() else int(node.expr.subs({symbol: 97 for symbol in node.expr.free_symbols}))
