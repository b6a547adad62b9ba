# SPDX-License-Identifier: MIT
"""tilewise.torch.optimize: a model for inference, captured, rewritten, checked against the original and compiled."""
from __future__ import annotations

import contextlib
import functools
import itertools
import os
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn
from torch.nn.utils import parametrize

from ... import _library, _runtime
from .. import _choice
from .._replace import Only, Report, _wanted, check_module, is_computed
from . import checking
from .backend import COMPILERS, Session
from .rewriting import layer_with

_count = itertools.count()
_AGAIN = "call tilewise.torch.optimize again on the model (it is `.model`)"


class Optimized(nn.Module):
    """A model for inference, with constant weights. Called like the model; records no gradients.

    model   the original, whose state dict this is
    report  what became of each layer
    """

    def __init__(self, model: nn.Module, settings: Mapping[str, Any]):
        super().__init__()
        super().train(False)
        self.model = model
        self.report = Report(model)
        self._settings = dict(settings)
        self._varying: frozenset[str] = frozenset()  # the names of buffers that the model changes
        self._start()

    def _start(self, **changes: Any) -> None:
        """Nothing is captured yet: the next call does it."""
        settings = {**self._settings, **changes}
        self._session = Session(freeze=True, compiler=settings["compiler"], inductor=settings["inductor"],
                                only=settings["only"], names=_names(self.model),
                                varying=functools.partial(_identities, self.model, self._varying),
                                strategy=settings["strategy"], progress=settings["progress"])
        self._choice = None if settings["strategy"] is None else _choice.Choice(settings["strategy"])
        self._run = torch.compile(_own_function(self.model), backend=self._session.compile, dynamic=settings["dynamic"])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        choosing = contextlib.nullcontext() if self._choice is None else _choice.choosing(self._choice)
        with torch.no_grad(), choosing:
            return self._run(*args, **kwargs)

    @property
    def graphs(self) -> list[torch.fx.GraphModule]:
        """The graphs that were compiled so far, as they were handed to the compiler."""
        return list(self._session.graphs)

    def train(self, mode: bool = True) -> Optimized:
        if mode:
            raise RuntimeError("an optimized model does not train: its weights are constants. Train the model (it is "
                               "`.model`), with torch.compile(model, backend=\"tilewise\") for instance, and optimize it again")
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"the weights of an optimized model are constants: load them into the model, then {_AGAIN}")

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        raise RuntimeError("an optimized model stays on its device, in its type: its weights are constants. Move or convert "
                           f"the model, then {_AGAIN}")

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: without the compiled code, which is made again when first called."""
        left_out = ("_run", "_session", "_choice")
        state = {name: what for name, what in self.__dict__.items() if name not in left_out}
        return {**state, "_settings": {**self._settings, "progress": None}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._start()


def _own_function(model: nn.Module) -> Callable[..., Any]:
    """A function that calls the model, with code and a name of its own: torch counts compilations, and limits them, by code,
    and remembers by name which sizes vary."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    code = run.__code__.replace(co_name=f"optimized_{next(_count)}")
    return types.FunctionType(code, run.__globals__, closure=run.__closure__)


def optimize(model: nn.Module, *example_inputs: Any, example_kwargs: Mapping[str, Any] | None = None,
             strategy: str | None = None, pack: str | os.PathLike[str] | None = None, only: Only = None,
             dynamic: bool | None = None, cuda_graphs: bool = True, compiler: str = "inductor",
             check: bool = True, progress: Any = None) -> Optimized:
    """The model for inference: BatchNorm folded into weights, bias, activation and residual sum in the kernel that they
    follow, channels-last memory throughout, the rest compiled by Inductor. Checked against the model on the example.

    example_inputs   what the model is called with; the batch may have another size later. example_kwargs: by name
    strategy         how kernels are chosen: "measure" times the best few
    pack             a file of built kernels to load first (tilewise build --pack)
    only             the layers to rewrite, as replace() takes them; all if not given
    dynamic          as torch.compile has it: None takes sizes as variable once they vary
    cuda_graphs      on a GPU, launches are captured and replayed
    compiler         of what is left: "inductor", or "eager", which runs it as it is
    check            False compares nothing
    progress         of compiling kernels, on all cores, and of Inductor: a bar on standard error if that is a terminal; True:
                     always, False: never; or a function that is called with how many are done, how many there are and what
    """
    _refuse(model, compiler)
    example = checking.Example(example_inputs, dict(example_kwargs or {}))
    devices = {x.device for x in (*model.parameters(), *pytree.tree_leaves((example.args, example.kwargs)))
               if isinstance(x, torch.Tensor)}
    for device in devices if pack is not None else ():
        _library.check("tilewise_load_pack", _runtime.context(_runtime.device_name(device)), os.fspath(pack))
    on_gpu = any(device.type == "cuda" for device in devices)
    wanted = _wanted(only, [name for name, _ in model.named_modules()])
    named = None if only is None else frozenset(name for name, layer in model.named_modules() if wanted(name, layer))
    optimized = Optimized(model, {"strategy": strategy, "compiler": compiler, "dynamic": dynamic, "only": named,
                                  "progress": progress, "inductor": _graphs_of_launches() if on_gpu and cuda_graphs else {}})
    before = {name: (x, _mark(x)) for name, x in _buffers(model)}
    plain = example.run(model)
    optimized._varying = frozenset(name for name, x in _buffers(model) if not _is_as(x, *before.get(name, (None, 0))))
    optimized._start()
    _capture(optimized, example, checking.reference(model, example, plain) if check else None)
    return optimized


def _buffers(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    return model.named_buffers(remove_duplicate=False)


def _identities(model: nn.Module, names: frozenset[str]) -> frozenset[int]:
    """Those of the tensors that have these names now."""
    return frozenset(id(x) for name, x in _buffers(model) if name in names)


def _mark(x: torch.Tensor) -> Any:
    """What shows later whether something has written to a tensor: inference mode counts no versions."""
    return x.clone() if x.is_inference() else x._version


def _is_as(x: torch.Tensor, before: torch.Tensor | None, mark: Any) -> bool:
    """Whether it is the same tensor, and nothing has written to it."""
    return x is before and (torch.equal(x, mark) if x.is_inference() else x._version == mark)


def _graphs_of_launches() -> dict[str, Any]:
    """Inductor's settings for CUDA graphs. Results that are still in use when the next call begins are copied for it, where
    torch can; else they are overwritten, and torch says so."""
    import torch._inductor as inductor
    settings = {"triton.cudagraphs": True, "triton.cudagraph_trees_generation_cloning": "user_visible"}
    known = inductor.list_options()
    return {name: what for name, what in settings.items() if name in known}


def _refuse(model: nn.Module, compiler: str) -> None:
    if isinstance(model, (Optimized, torch.jit.ScriptModule)) or hasattr(model, "_orig_mod"):
        raise TypeError(f"optimize: a {type(model).__name__} is compiled already; pass the model that it was made of")
    check_module(model, "optimize")
    training = next((name for name, layer in model.named_modules() if layer.training), None)
    if training is not None and not _is_exported(model):
        raise ValueError(f"optimize: {training or 'the model'} is in training mode; call model.eval() first, or train with "
                         "torch.compile(model, backend=\"tilewise\")")
    if compiler not in COMPILERS:
        raise ValueError(f"compiler: {compiler!r}; need one of {', '.join(COMPILERS)}")


def _is_exported(model: nn.Module) -> bool:
    """Whether it is a program of torch.export, which has the mode that it was exported in, and refuses eval()."""
    return isinstance(model, torch.fx.GraphModule) and "eval" in vars(model)


def _capture(optimized: Optimized, example: checking.Example, reference: checking.Reference | None) -> None:
    """Runs the example, which captures and compiles; compares, and writes the report."""
    session = optimized._session
    try:
        results = example.run(optimized)
    except Exception as error:
        raise RuntimeError(f"optimize: {type(optimized.model).__name__} cannot be captured or run: {error}\n"
                           "tilewise.torch.replace(model) needs no graph") from error
    if not session.graphs:
        raise RuntimeError(f"optimize: torch.compile captured nothing of {type(optimized.model).__name__}; "
                           "TORCH_LOGS=graph_breaks says why. tilewise.torch.replace(model) needs no graph")
    _fill_in(optimized.report, session)
    if reference is not None and not reference.agrees(results):
        error, allowed = reference.distance(results)
        raise RuntimeError(f"optimize: the result differs from the model's by {error:.3g} (allowed: {allowed:.3g})"
                           + _blame(optimized, example, reference))


def _blame(optimized: Optimized, example: checking.Example, reference: checking.Reference) -> str:
    done = optimized._session.done
    layers = [layer for layer, what in done.items() if not what.startswith("folded")]

    def differs(only: frozenset[str]) -> bool:
        optimized._start(compiler="eager", only=only)
        try:
            return not reference.agrees(example.run(optimized))
        except Exception:
            return True

    if not differs(frozenset(layers)):
        return " when Inductor compiles it, and agrees when it does not; pass compiler=\"eager\""
    layer = checking.first_to_blame(layers, differs)
    if layer is None:
        return " even if no layer is rewritten: it may draw random numbers, or remember calls; pass check=False if that is so"
    return f" because of {layer} ({done[layer]}); leave that out: only=[...] names the layers to rewrite"


def _names(model: nn.Module) -> dict[int, str]:
    """The names of parameters and buffers, by the identity of their tensors. One that layers share, as an embedding and the last
    product of a language model do, has that of a layer which is a product."""
    names: dict[int, str] = {}
    of_products: set[int] = set()
    for prefix, layer in model.named_modules():
        is_product = is_computed(layer)
        for name, x in (*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)):
            if id(x) not in names or (is_product and id(x) not in of_products):
                names[id(x)] = f"{prefix}.{name}" if prefix else name
            if is_product:
                of_products.add(id(x))
    return names


def _fill_in(report: Report, session: Session) -> None:
    """Every layer with parameters, in the model's order, and products that belong to none."""
    for name, layer in report.model.named_modules():
        # With those that it shares its parameters with.
        layers = [name, *(layer_with(session.names[id(x)]) for x in layer.parameters(recurse=False) if id(x) in session.names)]
        done = next((one for one in layers if one in session.done), name)
        if name in session.done or (done in session.done and is_computed(layer)):
            report.replaced[name] = session.done[done]
        elif isinstance(layer, parametrize.ParametrizationList):  # belongs to the layer that holds it
            continue
        elif len(layers) == 1:
            continue
        elif name in session.left:
            report.kept[name] = session.left[name]
        elif session.only is not None and name not in session.only:
            report.kept[name] = "not asked for"
        elif not session.captured.isdisjoint(layers):
            report.kept[name] = f"{type(layer).__name__} is no product; left to {session.compiler}"
        else:
            report.kept[name] = "not captured: the example does not call it, or torch.compile leaves it to Python"
    report.replaced.update({layer: what for layer, what in session.done.items() if layer not in report.replaced})
