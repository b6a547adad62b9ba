# SPDX-License-Identifier: MIT
"""The problems of a model that a function makes: those that tilewise.torch.problems records of its layers. Products that torch
computes by itself are listed."""
from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ._crawl_products import Found
from ._crawl_torch import DTYPES, OTHER_PRODUCTS

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "convolution", "convolution_overrideable", "mkldnn_convolution")


def _model(name: str) -> Any:
    """What MODULE:FUNCTION gives: a model, or what makes one when it is called."""
    from torch import nn

    module, _, function = name.partition(":")
    if not module or module.startswith(".") or not function.isidentifier():
        raise ValueError(f"{name}: need MODULE:FUNCTION, such as torchvision.models:resnet50")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # the user names a module of theirs; what is installed comes first
    try:
        found = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise ValueError(f"{name}: {error}") from None
    except AttributeError:
        raise ValueError(f"{name}: the module {module} has no {function}") from None
    model = found() if callable(found) and not isinstance(found, nn.Module) else found
    if not isinstance(model, nn.Module):
        raise ValueError(f"{name}: it made a {type(model).__name__}; need a torch.nn.Module")
    return model


def _inputs(words: Sequence[str], dtype: Any) -> list[Any]:
    import torch

    made = []
    for word in words:
        sizes, _, kind = word.partition(":")
        wanted = getattr(torch, kind, None) if kind else dtype
        if not isinstance(wanted, torch.dtype) or not all(size.isdecimal() for size in sizes.split("x")):
            raise ValueError(f"--input takes sizes such as 8x3x224x224, or 8x128:int64 with a type of torch, not {word!r}")
        made.append(torch.zeros([int(size) for size in sizes.split("x")], dtype=wanted))
    return made


@contextmanager
def _other_products() -> Iterator[dict[str, int]]:
    """How often torch itself multiplies, by the name of the operation."""
    from torch.utils._python_dispatch import TorchDispatchMode

    counts: dict[str, int] = {}

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func._opname
            if func.namespace == "aten" and (name in PRODUCTS or any(part in name for part in OTHER_PRODUCTS)):
                counts[name] = counts.get(name, 0) + 1
            return func(*args, **(kwargs or {}))

    with Watch():
        yield counts


def crawl_function(name: str, inputs: Sequence[str], *, backward: bool, dtype: str | None) -> tuple[str, dict[str, int], list[Found]]:
    """The network's name, how often it runs each problem, and what else multiplies."""
    import torch

    from .torch._functional import TYPES
    from .torch._warm import problem_counts

    if not inputs:
        raise ValueError(f"{name}: its model has to be called once; give --input with the sizes of each argument, such as 8x3x224x224")
    types = {ours: getattr(torch, theirs) for theirs, ours in DTYPES.items() if getattr(torch, theirs) in TYPES}
    if dtype is not None and dtype not in types:
        raise ValueError(f"--dtype {dtype}: need one of {', '.join(types)}, in which torch computes layers")
    model = _model(name)
    if dtype:
        model = model.to(types[dtype])
    own = next((parameter.dtype for parameter in model.parameters()), torch.float32)
    with _other_products() as other:
        counts = problem_counts(model.train(backward), *_inputs(inputs, own), training=backward)
    unmapped = [Found(f"{count}x", operation, None, "torch computes it, in no layer that tilewise replaces")
                for operation, count in other.items()]
    return name.partition(":")[2], counts, unmapped
