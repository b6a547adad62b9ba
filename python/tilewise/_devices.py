# SPDX-License-Identifier: MIT
"""Names of devices: the library's own ("cpu", "cuda:0", "hip:0"), and torch's, which calls the GPUs of every vendor cuda."""
from __future__ import annotations

import sys
from typing import Any

GPUS = ("cuda", "hip")


def torch_gpu() -> str:
    """What GPUs of the imported torch are to the library: those of a torch for ROCm are AMD's."""
    return "hip" if getattr(sys.modules["torch"].version, "hip", None) else "cuda"


def _index(device: Any) -> int:
    """Without a number it is the GPU that the program has made torch's current one."""
    if device.index is not None:
        return int(device.index)
    cuda = sys.modules["torch"].cuda
    return int(cuda.current_device()) if cuda.is_initialized() else 0  # asking would open the GPU


def name_of_torch(device: Any) -> str:
    """The library's name for a torch.device."""
    if device.type == "cuda":
        return f"{torch_gpu()}:{_index(device)}"
    return "cpu" if device.type == "cpu" else str(device)


def device_name(device: Any) -> str:
    """A device's name: given as text, or as a torch.device."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(device, torch.device):
        return name_of_torch(device)
    text = str(device)
    return f"{text}:0" if text in GPUS else text


def gpu_index(name: str) -> int:
    """Which of the GPUs that torch, too, can use; -1 for other devices."""
    kind, _, index = name.partition(":")
    return int(index) if kind in GPUS else -1
