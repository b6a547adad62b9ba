# SPDX-License-Identifier: MIT
"""Layers, and tilewise.torch.replace, which turns the layers of a model into them in place: parameters, hooks and the state
dict stay as they are.
"""
from __future__ import annotations

import dataclasses

import torch
from torch import nn

from . import _functional


class Linear(nn.Linear):
    """torch.nn.Linear, computed by tilewise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _functional.linear(x, self.weight, self.bias)


class Conv1d(nn.Conv1d):
    """torch.nn.Conv1d, computed by tilewise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _functional.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(nn.Conv2d):
    """torch.nn.Conv2d, computed by tilewise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _functional.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(nn.Conv3d):
    """torch.nn.Conv3d, computed by tilewise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _functional.conv3d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


_OURS: dict[type[nn.Module], type[nn.Module]] = {nn.Linear: Linear, nn.Conv1d: Conv1d, nn.Conv2d: Conv2d,
                                                 nn.Conv3d: Conv3d}
_TYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclasses.dataclass
class Report:
    """What replace() did: the layers it took over, by their names in the model, and those it left, with the reason."""

    model: nn.Module = dataclasses.field(repr=False)
    replaced: dict[str, str] = dataclasses.field(default_factory=dict)
    kept: dict[str, str] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{len(self.replaced)} layers replaced, {len(self.kept)} kept"]
        lines += [f"  {name or '(model)'}: {kind}" for name, kind in self.replaced.items()]
        lines += [f"  {name or '(model)'}: kept, {why}" for name, why in self.kept.items()]
        return "\n".join(lines)


def _why_not(layer: nn.Module) -> str | None:
    weight = layer.weight
    if not isinstance(weight, torch.Tensor) or weight.dtype not in _TYPES:
        return f"its weights are of {getattr(weight, 'dtype', None)}; need one of {', '.join(map(str, _TYPES))}"
    if getattr(layer, "padding_mode", "zeros") != "zeros":
        return f"padding_mode is {layer.padding_mode}; need zeros"
    return None


def _channels_last(layer: nn.Module) -> None:
    """Weights in the order in which kernels read them, so that no call has to copy them."""
    weight = layer.weight
    if isinstance(weight, torch.Tensor) and weight.dim() > 2:
        dims = weight.dim()
        order = weight.data.permute(0, *range(2, dims), 1).contiguous()
        weight.data = order.permute(0, dims - 1, *range(1, dims - 1))


def replace(model: nn.Module) -> Report:
    """Makes every Linear, Conv1d, Conv2d and Conv3d of the model one of tilewise's, in place, and reports it. Subclasses are
    left alone: they may do something else."""
    report = Report(model)
    for name, layer in model.named_modules():
        ours = _OURS.get(type(layer))
        if ours is None:
            if isinstance(layer, tuple(_OURS)) and type(layer) not in _OURS.values():
                report.kept[name] = f"{type(layer).__name__} is a subclass that may compute something else"
            continue
        why = _why_not(layer)
        if why is not None:
            report.kept[name] = why
            continue
        layer.__class__ = ours
        _channels_last(layer)
        report.replaced[name] = ours.__name__
    return report
