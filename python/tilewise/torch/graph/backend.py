# SPDX-License-Identifier: MIT
"""The backend of torch.compile: torch.compile(model, backend="tilewise"). Dynamo and AOTAutograd capture, the passes rewrite
each graph, forward or backward, and Inductor compiles the rest. `optimize` is this backend too, with constant parameters.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from ..._warm import progress_of
from . import lowering, passes, warming
from .rewriting import Rewriting

COMPILERS = ("inductor", "eager")


@dataclasses.dataclass(eq=False)
class Session:
    """What the graphs of one model are compiled with, and what became of their layers.

    freeze     parameters and buffers are constants where no gradient is recorded: BatchNorm is folded, weights are packed
    compiler   of what is left: "inductor", or "eager", which runs it as it is
    inductor   settings for Inductor (torch._inductor.config)
    only       the layers that may be rewritten; None for all
    names      of parameters and buffers, by the identity of their tensors
    varying    gives parameters and buffers, by identity, that are no constants; a part of a model may put others in their places
               before the next part is compiled
    strategy   how kernels are chosen that are compiled ahead;  progress: of that, and of Inductor, as tilewise.build has it
    done       what became of layers;  left: why others were not rewritten;  captured: those with constants in a graph
    graphs     as they were handed to the compiler
    """

    freeze: bool = False
    compiler: str = "inductor"
    inductor: dict[str, Any] = dataclasses.field(default_factory=dict)
    only: frozenset[str] | None = None
    names: Mapping[int, str] = dataclasses.field(default_factory=dict)
    varying: Callable[[], frozenset[int]] = frozenset
    strategy: str | None = None
    progress: Any = None
    done: dict[str, str] = dataclasses.field(default_factory=dict)
    left: dict[str, str] = dataclasses.field(default_factory=dict)
    captured: set[str] = dataclasses.field(default_factory=set)
    graphs: list[fx.GraphModule] = dataclasses.field(default_factory=list)

    def compile(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """A backend in torch's sense: compiles a graph that Dynamo has captured."""
        from torch._functorch import config as functorch_config
        from torch._inductor.compile_fx import compile_fx
        kept = list(range(len(inputs)))
        if self.freeze and not torch.is_grad_enabled():
            kept = _bind_constants(module, inputs, self.varying())
        # AOTAutograd's cache knows nothing of our passes, and would hand out what Inductor alone has compiled. Inductor's
        # freezing would pack weights for other kernels. On a GPU it pads products of odd sizes with copies, between which
        # the passes find no epilogue; our kernels take odd sizes.
        with functorch_config.patch(enable_autograd_cache=False):
            compiled = compile_fx(module, [inputs[i] for i in kept], inner_compile=self._compile_graph,
                                  config_patches={"shape_padding": False, **self.inductor, "freezing": False},
                                  decompositions=lowering.decompositions(self.compiler == "inductor"))
        # Dynamo looks at the graph again and leaves out what is no input any more; where it does not, this does.
        return lambda *args: compiled(*(args if len(args) == len(kept) else [args[i] for i in kept]))

    def _compile_graph(self, module: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        """Compiles a graph of ATen operations: called by Inductor for each forward and backward graph."""
        with _disable_current_modes(), torch.no_grad():  # the constants are tensors with data
            return self._rewrite_and_compile(module, inputs, options)

    def _rewrite_and_compile(self, module: fx.GraphModule, inputs: Sequence[Any],
                             options: dict[str, Any]) -> Callable[..., Any]:
        placeholders = module.graph.find_nodes(op="placeholder")
        _take_strides(placeholders, inputs)
        constants = _constants(placeholders) if options.get("is_inference") else {}
        rewriting = Rewriting(module, constants, self.names, self.only)
        self.captured |= rewriting.layers
        for run in passes.ALL:
            run(rewriting)
        rewriting.drop_unused()
        self.done.update(rewriting.done)
        self.left.update({layer: why for layer, why in rewriting.left.items() if layer not in self.done})
        order = module.graph.find_nodes(op="placeholder")
        lowered = lowering.lower(module, rewriting, decompose=self.compiler == "inductor")
        self.graphs.append(lowered)
        warming.warm(lowered, self.strategy, self.progress)
        fixed = {placeholders[i] for i in options.get("static_input_idxs", ())} | set(rewriting.constants)
        options["static_input_idxs"] = [i for i, node in enumerate(order) if node in fixed]
        run_lowered = self._run_of(lowered, [node.meta["val"] for node in order], options)
        if not constants:
            return run_lowered
        where = {node: i for i, node in enumerate(placeholders)}
        sources = [rewriting.constants.get(node, where.get(node)) for node in order]

        def call(args: list[Any]) -> Any:
            given = [args[source] if isinstance(source, int) else source for source in sources]
            args.clear()
            return run_lowered(given)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def _run_of(self, lowered: fx.GraphModule, inputs: list[Any], options: dict[str, Any]) -> Callable[..., Any]:
        if self.compiler == "inductor":
            from torch._inductor.compile_fx import compile_fx_inner
            tell, close = progress_of(self.progress)
            if tell:
                tell(len(self.graphs) - 1, len(self.graphs), "Inductor compiles what is left")
            try:
                return compile_fx_inner(lowered, inputs, **options)
            finally:
                close()
        run = lowered.forward

        def call(args: list[Any]) -> Any:
            given = list(args)
            args.clear()
            with torch.no_grad():
                return run(*given)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call


def _take_strides(placeholders: Sequence[fx.Node], inputs: Sequence[Any]) -> None:
    """Gives placeholders the strides that their inputs will have: what a forward graph keeps for a backward one lies as Inductor
    has laid it out, not as the joint graph was traced."""
    for node, given in zip(placeholders, inputs):
        if isinstance(given, FakeTensor):
            node.meta["val"] = given


def _bind_constants(module: fx.GraphModule, inputs: Sequence[Any], varying: frozenset[int]) -> list[int]:
    """Makes parameters and buffers of the model, which Dynamo hands over as inputs, attributes of the graph's module: what
    AOTAutograd takes to be parameters. Returns which inputs are left."""
    kept = []
    for i, (node, given) in enumerate(zip(module.graph.find_nodes(op="placeholder"), inputs)):
        if not _belongs_to_a_module(node, given) or id(given) in varying:
            kept.append(i)
            continue
        name = f"tilewise_constant_{i}"
        if isinstance(given, nn.Parameter):
            module.register_parameter(name, given)
        else:
            module.register_buffer(name, given)
        if hasattr(module, "_param_name_to_source"):
            module._param_name_to_source[name] = node._dynamo_source
        with module.graph.inserting_before(node):
            bound = module.graph.get_attr(name)
        bound.meta = dict(node.meta)
        node.replace_all_uses_with(bound)
        module.graph.erase_node(node)
    module.recompile()
    return kept


def _belongs_to_a_module(node: fx.Node, given: Any) -> bool:
    source = getattr(node, "_dynamo_source", None)
    return isinstance(given, torch.Tensor) and source is not None and (
        isinstance(given, nn.Parameter) or type(getattr(source, "base", None)).__name__ == "UnspecializedParamBufferSource")


def _constants(placeholders: Sequence[fx.Node]) -> dict[fx.Node, torch.Tensor]:
    """The inputs that are parameters of the captured module, and that it neither changes nor returns."""
    context = TracingContext.try_get()
    if context is None or not context.params_flat or context.fw_metadata is None:
        return {}
    facts = context.fw_metadata
    used_otherwise = {i for i, info in enumerate(facts.input_info) if info.mutates_data or info.mutates_metadata}
    used_otherwise |= {info.base_idx for info in facts.output_info if info.base_idx is not None}
    return {placeholders[i]: tensor for i, tensor in enumerate(context.params_flat)
            if i not in used_otherwise and isinstance(tensor, torch.Tensor)}
