# SPDX-License-Identifier: MIT
"""tilewise.torch.replace, which turns the layers of a model into tilewise's in place, and restore, which turns them back.
Only the class of a layer changes: parameters, buffers, hooks and the state dict stay as they are.
"""
from __future__ import annotations

import dataclasses
import difflib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from ._choice import Choice, operation
from ._functional import TYPES
from ._modules import OURS

Only = str | type | Callable[[str, nn.Module], bool] | Iterable[str | type] | None
_THEIRS = {ours: theirs for theirs, ours in OURS.items()}


@dataclasses.dataclass
class Report:
    """What replace() did: every layer with parameters by its name in the model, those that tilewise computes now with their
    kind, the others with the reason why they were kept."""

    model: nn.Module = dataclasses.field(repr=False)
    replaced: dict[str, str] = dataclasses.field(default_factory=dict)
    kept: dict[str, str] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{len(self.replaced)} layers replaced, {len(self.kept)} kept"]
        lines += [f"  {name or '(model)'}: {kind}" for name, kind in self.replaced.items()]
        lines += [f"  {name or '(model)'}: kept, {why}" for name, why in self.kept.items()]
        return "\n".join(lines)


# ---- classes ---------------------------------------------------------------------------------------------------------


def _theirs(kind: type[nn.Module]) -> type[nn.Module] | None:
    """The layer of torch.nn that a class computes as it is, or computes in its own way but for tilewise."""
    return next((base for base in kind.__mro__ if base in OURS), None)


def _computes_as(kind: type[nn.Module], base: type[nn.Module]) -> bool:
    """Whether a subclass leaves to torch.nn's layer what is computed."""
    return all(getattr(kind, name, None) is getattr(base, name, None) for name in ("__call__", "forward", "_conv_forward"))


_made: dict[type[nn.Module], type[nn.Module]] = {}  # by the subclass of a layer that a class was made for


def _remake(kind: type[nn.Module]) -> nn.Module:
    made = _made_for(kind)
    return made.__new__(made)


def _made_for(kind: type[nn.Module]) -> type[nn.Module]:
    """A class that is the given subclass of a layer of torch.nn and the one of tilewise. Pickles name the subclass."""
    found = _made.get(kind)
    if found is None:
        base = _theirs(kind)
        assert base is not None

        def reduce(self: nn.Module, protocol: Any) -> Any:
            return _remake, (kind,), nn.Module.__reduce_ex__(self, protocol)[2]

        fields = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__,
                  "__reduce_ex__": reduce}
        found = _made[kind] = types.new_class(kind.__name__, (kind, OURS[base]), exec_body=lambda space: space.update(fields))
        _THEIRS[found] = kind
    return found


def _rebased(kind: type[nn.Module], base: type[nn.Module]) -> type[nn.Module]:
    """A class that torch.nn.utils.parametrize made for one layer, on another base: it takes the base as what the layer was."""
    space = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
    return type(kind.__name__, (base,), space)


def _plain(layer: nn.Module) -> type[nn.Module]:
    """The class of a layer without its parametrizations."""
    return type(layer).__bases__[0] if parametrize.is_parametrized(layer) else type(layer)


def _become(layer: nn.Module, kind: type[nn.Module]) -> None:
    layer.__class__ = _rebased(type(layer), kind) if parametrize.is_parametrized(layer) else kind


def is_computed(layer: nn.Module) -> bool:
    """Whether it is one of torch.nn's layers that tilewise computes, replaced or not."""
    return _theirs(_plain(layer)) is not None


def _is_ours(layer: nn.Module) -> bool:
    return _plain(layer) in _THEIRS


# ---- which layers ----------------------------------------------------------------------------------------------------


def _why_not(layer: nn.Module, parent: nn.Module | None) -> str | None:
    kind = _plain(layer)
    base = _theirs(kind)
    if base is None:
        return f"{kind.__name__} is no layer that tilewise computes"
    if isinstance(parent, nn.MultiheadAttention):
        return "MultiheadAttention reads its weights and computes with them itself"
    if not _computes_as(kind, base):
        return f"{kind.__name__} is a subclass of {base.__name__} with a forward of its own"
    if "forward" in vars(layer) or "_conv_forward" in vars(layer):
        return "its forward was set on the layer itself"
    dtype = getattr(layer.weight, "dtype", None)
    if dtype not in TYPES:
        return f"its weights are of {dtype}; need one of {', '.join(map(str, TYPES))}"
    return None


def _wanted(only: Only, names: Sequence[str]) -> Callable[[str, nn.Module], bool]:
    if only is None:
        return lambda name, layer: True
    if callable(only) and not isinstance(only, type):
        return only
    given = [only] if isinstance(only, (str, type)) else list(only)
    kinds = tuple(item for item in given if isinstance(item, type))
    words = [item for item in given if not isinstance(item, type)]
    for word in words:
        _check_name(word, names, "only")
    return lambda name, layer: isinstance(layer, kinds) or any(
        word in ("", name) or name.startswith(word + ".") for word in words)


def _check_name(word: Any, names: Sequence[str], argument: str) -> None:
    if not isinstance(word, str):
        raise TypeError(f"{argument}: {word!r}; need names of layers, classes, or a function of a name and a layer")
    if word not in names:
        near = difflib.get_close_matches(word, names, 3)
        raise ValueError(f"{argument}: the model has no layer {word!r}" + (f"; near are {', '.join(near)}" if near else
                         "; print(model) shows their names"))


Kernels = Mapping[str, str | Sequence[str]] | None


def _choices(strategy: str | None, kernels: Kernels, names: Sequence[str]) -> dict[str, Choice]:
    """Those of the layers that have kernels of their own."""
    for word in kernels or ():
        _check_name(word, names, "kernels")
    return {word: Choice(strategy, (given,) if isinstance(given, str) else tuple(given))
            for word, given in (kernels or {}).items()}


def _check_kernels(name: str, layer: nn.Module, kernels: Sequence[str]) -> None:
    needed = ("gemm",) if isinstance(layer, nn.Linear) else ("conv_fwd", "conv_bwd_data", "conv_bwd_weight")
    for kernel in kernels:
        if operation(kernel)[0] not in needed:
            raise ValueError(f"kernels: {name!r} is a {_plain(layer).__name__}, which needs kernels of {', '.join(needed)}, "
                             f"not the {operation(kernel)[0]} kernel {kernel}")


def check_module(model: Any, name: str) -> None:
    """Refuses what is no model; `name` is the function that was called with it."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"{name}: expected a torch.nn.Module, got {type(model).__name__}")


# ---- replace, restore ------------------------------------------------------------------------------------------------


def _layers(model: nn.Module) -> list[tuple[str, nn.Module, nn.Module | None]]:
    """Every layer with parameters, under each of its names, with its parent."""
    found: list[tuple[str, nn.Module, nn.Module | None]] = []
    modules = dict(model.named_modules(remove_duplicate=False))
    for name, layer in modules.items():
        if isinstance(layer, parametrize.ParametrizationList):  # belongs to the layer that holds it
            continue
        if any(True for _ in layer.parameters(recurse=False)) or is_computed(layer):
            found.append((name, layer, modules[name.rpartition(".")[0]] if name else None))
    return found


def replace(model: nn.Module, *, strategy: str | None = None, kernels: Kernels = None, only: Only = None) -> Report:
    """Makes every Linear, Conv1d to Conv3d and ConvTranspose1d to ConvTranspose3d of the model one of tilewise's, in place,
    and reports it. Subclasses that do not compute in their own way are taken, too.

    strategy  how the kernels are chosen: "auto", "rules", "first-fit", or "measure", which times the best few at first calls
    kernels   for layers by their names a kernel's name, or several, one for each direction: this one and no other
    only      names of layers (or of what holds them), classes, or a function of name and layer that says which ones
    """
    check_module(model, "replace")
    report = Report(model)
    names = [name for name, _ in model.named_modules(remove_duplicate=False)]
    wanted, choices = _wanted(only, names), _choices(strategy, kernels, names)
    otherwise = Choice(strategy)
    layers = {}
    for name, layer, parent in _layers(model):
        why = None if _is_ours(layer) else _why_not(layer, parent)
        if why is None and not _is_ours(layer) and not wanted(name, layer):
            why = "not asked for"
        if why is None:
            layers[name] = layer
        else:
            report.kept[name] = why
    for name, choice in choices.items():
        if name not in layers:
            raise ValueError(f"kernels: {name!r} is not replaced: {report.kept.get(name, 'it has no parameters')}")
        _check_kernels(name, layers[name], choice.kernels)
    for name, layer in layers.items():
        if not _is_ours(layer):
            kind = _plain(layer)
            _become(layer, OURS[kind] if kind in OURS else _made_for(kind))
        if strategy is not None or name in choices:
            layer.tilewise_choice = choices.get(name, otherwise)  # type: ignore[assignment]
        report.replaced[name] = _plain(layer).__name__
    return report


def restore(model: nn.Module) -> list[str]:
    """Makes the layers torch's own again, and returns their names."""
    check_module(model, "restore")
    restored = []
    for name, layer, _parent in _layers(model):
        if not _is_ours(layer):
            continue
        vars(layer).pop("tilewise_choice", None)
        _become(layer, _THEIRS[_plain(layer)])
        restored.append(name)
    return restored
