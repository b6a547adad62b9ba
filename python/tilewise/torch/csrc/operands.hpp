// SPDX-License-Identifier: MIT
// Checks that every op makes of its tensors, and the words of a problem that every op has.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <string_view>

#include "plans.hpp"

namespace tilewise_torch {

using OptionalTensor = std::optional<at::Tensor>;

inline bool has(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

inline const char* dtype_word(const at::Tensor& x, const char* name) {
    switch (x.scalar_type()) {
        case at::kFloat: return "fp32";
        case at::kHalf: return "fp16";
        case at::kBFloat16: return "bf16";
        default:
            TORCH_CHECK_TYPE(false, name, ": dtype ", x.scalar_type(),
                             " is not supported; use one of float32, float16, bfloat16");
    }
}

inline void check_like(const at::Tensor& x, const char* name, const at::Tensor& first, const char* first_name) {
    TORCH_CHECK_TYPE(x.scalar_type() == first.scalar_type(), name, ": it is of ", x.scalar_type(), ", but ", first_name,
                     " is of ", first.scalar_type(), "; convert one of them");
    TORCH_CHECK_VALUE(x.device() == first.device(), name, ": it is on ", x.device(), ", but ", first_name, " is on ",
                      first.device(), "; move one of them");
}

// The bias without gaps.
inline at::Tensor bias_of(const OptionalTensor& bias, int64_t length, const at::Tensor& first, const char* first_name) {
    if (!has(bias)) return {};
    check_like(*bias, "bias", first, first_name);
    TORCH_CHECK_VALUE(bias->dim() == 1 && bias->size(0) == length, "bias: shape ", bias->sizes(), ", need (", length,
                      ")");
    return bias->contiguous();
}

// Numbers of a dimension each, in the words of a problem: 3x3.
inline std::string joined(at::IntArrayRef sizes) {
    std::string text;
    for (const int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
}

// The end of a problem in JSON. A word has no quotes, so that no text becomes another field.
inline std::string last_fields(const char* dtype, bool has_bias, std::string_view activation, int64_t align) {
    TORCH_CHECK_VALUE(activation.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_+") == std::string_view::npos,
                      "activation: '", activation, "'; need words such as relu, joined by +");
    std::string epilogue = has_bias ? "bias" : "";
    if (has_bias && !activation.empty()) epilogue += "+";
    epilogue += activation;
    std::string text = c10::str("\"dtype\":\"", dtype, "\",\"align\":", align);
    if (!epilogue.empty()) text += c10::str(",\"epilogue\":\"", epilogue, "\"");
    return text + "}";
}

inline void start_key(Key& key, int op, const at::Tensor& like) {
    key.add(op);
    key.add(static_cast<int64_t>(like.scalar_type()));
    key.add(like.device().is_cpu() ? -1 : like.device().index());
    key.add(threads_of(like.device()));
}

enum Op : int { kGemm, kConvForward, kConvBackwardData, kConvBackwardWeight };

}  // namespace tilewise_torch
