# SPDX-License-Identifier: MIT
"""The models that benchmarks/models.py times: torchvision's, and blocks of transformers, with random weights. Nothing is
downloaded."""
import dataclasses
from collections.abc import Callable

import torch
from torch import nn


@dataclasses.dataclass
class Subject:
    """A model and what it is called with; `to_tensor` gives the tensor of its result that is compared and trained on."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    to_tensor: Callable[[object], torch.Tensor]

    @property
    def layers(self) -> int:
        kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
        return sum(isinstance(layer, kinds) for layer in self.model.modules())


def _randomize_statistics(model: nn.Module) -> None:
    """A new BatchNorm scales nothing, and neither does folding it."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -0.2, 0.2)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
    for name, parameter in model.named_parameters():
        if name == "heads.head.weight":  # zero in torchvision
            nn.init.normal_(parameter, std=0.02)


def _vision(name: str, batch: int, image: int) -> Subject:
    import torchvision
    options = {"image_size": image} if name.startswith("vit") else {}
    model = getattr(torchvision.models, name)(**options)
    _randomize_statistics(model)
    return Subject(model.to(memory_format=torch.channels_last),
                   (torch.randn(batch, 3, image, image).to(memory_format=torch.channels_last),), lambda result: result)


def _bert(batch: int, tokens: int) -> Subject:
    import transformers
    config = transformers.BertConfig(num_hidden_layers=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return Subject(transformers.BertModel(config), (torch.randint(0, config.vocab_size, (batch, tokens)),),
                   lambda result: result.last_hidden_state)


def _llama(batch: int, tokens: int) -> Subject:
    import transformers
    config = transformers.LlamaConfig(vocab_size=1000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=1,
                                      num_attention_heads=16, num_key_value_heads=4, use_cache=False)
    return Subject(transformers.LlamaModel(config), (torch.randint(0, config.vocab_size, (batch, tokens)),),
                   lambda result: result.last_hidden_state)


def make(name: str, batch: int, image: int, tokens: int) -> Subject:
    """A model in fp32 on the CPU; raises ImportError where the package that has it is not installed."""
    torch.manual_seed(0)
    text = {"bert": _bert, "llama": _llama}.get(name)
    return _vision(name, batch, image) if text is None else text(batch, tokens)
