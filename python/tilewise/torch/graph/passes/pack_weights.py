# SPDX-License-Identifier: MIT
"""Constant weights in the order in which kernels read them: channels last, without gaps. Copied once, here."""
from __future__ import annotations

import torch

from ..rewriting import Rewriting, is_call, ops

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def run(graph: Rewriting) -> None:
    for node in list(graph.graph.nodes):
        if not is_call(node, ops.conv.default, ops.conv_backward_data.default, ops.linear.default):
            continue
        weight = node.args[1]
        if weight not in graph.constants:
            continue
        old = graph.constants[weight].detach()
        packed = old.contiguous(memory_format=FORMATS.get(old.dim(), torch.contiguous_format))
        if packed is not old:
            node.update_arg(1, graph.constant(packed, weight))
