# SPDX-License-Identifier: MIT
"""torch.compile(model, backend="tilewise", mode=..., options={...}): the backend as torch calls it, and its options."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from .backend import COMPILERS, Session

_OURS = {"freeze": (bool, "parameters and buffers are constants in inference"),
         "compiler": (str, f"of what is left: {' or '.join(COMPILERS)}")}


def session(mode: str | None, options: Mapping[str, Any] | None) -> Session:
    """The settings that mode and options mean. Unknown options are errors."""
    import torch._inductor as inductor
    from torch._inductor import config
    given = dict(options or {})
    ours = {name: given.pop(name) for name in _OURS if name in given}
    for name, what in ours.items():
        if not isinstance(what, _OURS[name][0]):
            raise TypeError(f"options[{name!r}]: {what!r}; need {_OURS[name][0].__name__}: {_OURS[name][1]}")
    if ours.get("compiler", "inductor") not in COMPILERS:
        raise ValueError(f"options['compiler']: {ours['compiler']!r}; need one of {', '.join(COMPILERS)}")
    known = inductor.list_options()
    strange = next((name for name in given if name.replace("-", "_") not in known), None)
    if strange is not None:
        raise ValueError(f"options: {strange!r} is unknown; there are {', '.join(_OURS)}, and Inductor's own "
                         "(torch._inductor.list_options())")
    patches = {**(inductor.list_mode_options(mode) if mode else {}),
               **{name.replace("-", "_"): what for name, what in given.items()}}
    freeze = bool(patches.pop("freezing", config.freezing))  # Inductor's word for it
    return Session(freeze=ours.get("freeze", freeze), compiler=ours.get("compiler", "inductor"), inductor=patches)


def backend(module: fx.GraphModule, inputs: Sequence[Any], *, mode: str | None = None,
            options: Mapping[str, Any] | None = None, **_more: Any) -> Callable[..., Any]:
    """The backend "tilewise" of torch.compile, for inference and training.

    mode     as Inductor has it: "reduce-overhead" captures CUDA graphs, "max-autotune" measures
    options  "freeze": parameters and buffers are constants where no gradient is recorded, so that BatchNorm is folded and
             weights are packed; "compiler": "inductor", or "eager", which runs what is left as it is; and Inductor's own
    """
    return session(mode, options).compile(module, inputs)


def register() -> None:
    """Makes the backend known to torch.compile by its name, unless an installed package has done so."""
    from torch._dynamo.backends import registry
    if "tilewise" not in registry._BACKENDS:
        registry.register_backend(compiler_fn=backend, name="tilewise")
