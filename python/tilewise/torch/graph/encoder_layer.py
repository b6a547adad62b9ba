# SPDX-License-Identifier: MIT
"""TransformerEncoderLayer's fast path for inference, one operation of torch for a whole layer, as the products that it is made of: the
passes look for those."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def encoder_layer(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
                  proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor,
                  norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor,
                  ffn_bias_2: Tensor, mask: Tensor | None = None, mask_type: int | None = None) -> Any:
    """aten._transformer_encoder_layer_fwd without a mask; with one it is left whole."""
    if mask is not None or src.dim() != 3:
        return NotImplemented

    def attend(x: Tensor) -> Tensor:
        qkv = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, num_heads, embed_dim // num_heads))
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind()
        heads = F.scaled_dot_product_attention(query, key, value)
        return F.linear(heads.transpose(1, 2).flatten(2), proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        x = F.linear(x, ffn_weight_1, ffn_bias_1)
        # On a GPU torch's fast path takes the approximation that cuBLAS fuses.
        x = F.gelu(x, approximate="tanh" if x.is_cuda else "none") if use_gelu else F.relu(x)
        return F.linear(x, ffn_weight_2, ffn_bias_2)

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        x = src + attend(norm(src, norm_weight_1, norm_bias_1))
        return x + feed_forward(norm(x, norm_weight_2, norm_bias_2))
    x = norm(src + attend(src), norm_weight_1, norm_bias_1)
    return norm(x + feed_forward(x), norm_weight_2, norm_bias_2)
