# SPDX-License-Identifier: MIT
"""Models for the tests of graphs: torchvision's and transformers', small, with random weights and statistics."""
from __future__ import annotations

from typing import Any

import torch
import torchvision
from against_torch import DEVICE
from torch import nn

IMAGES = (2, 3, 64, 64)
VISION = ("resnet18", "resnet50", "resnext50_32x4d", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "regnet_y_400mf",
          "densenet121", "convnext_tiny", "vit_b_16")


def randomize(model: nn.Module) -> nn.Module:
    """Statistics and scales that are not those of a new layer: folding them would otherwise change nothing."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -0.2, 0.2)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.2, 0.2)
    for name, parameter in model.named_parameters():
        if "layer_scale" in name:
            nn.init.uniform_(parameter, 0.5, 1.5)
        elif name == "heads.head.weight":  # torchvision's is zero
            nn.init.normal_(parameter, std=0.02)
    return model.to(DEVICE)


def vision(name: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    options: dict[str, Any] = {"num_classes": 10}
    if name.startswith("vit"):
        options["image_size"] = IMAGES[-1]
    return randomize(getattr(torchvision.models, name)(**options)).eval()


def bert() -> tuple[nn.Module, torch.Tensor]:
    import transformers
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=64, max_position_embeddings=32)
    return transformers.BertModel(config).eval().to(DEVICE), torch.randint(0, 50, (2, 16), device=DEVICE)


def llama() -> tuple[nn.Module, torch.Tensor]:
    import transformers
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                      num_key_value_heads=1, intermediate_size=64, max_position_embeddings=32, use_cache=False)
    return transformers.LlamaForCausalLM(config).eval().to(DEVICE), torch.randint(0, 50, (2, 16), device=DEVICE)


class Residual(nn.Module):
    """A little of everything that the passes look for, and quick to compile."""

    def __init__(self, channels: int = 8):
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.point = nn.Conv2d(channels, channels, 1, bias=False)
        self.point_norm = nn.BatchNorm2d(channels)
        self.up = nn.ConvTranspose2d(channels, 4, 2, stride=2)
        self.head = nn.Linear(4, 5, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = torch.relu(self.point_norm(self.point(x)) + x)
        return self.head(nn.functional.silu(self.up(x)).mean((2, 3)))


def residual() -> Residual:
    torch.manual_seed(0)
    return randomize(Residual()).eval()
