// SPDX-License-Identifier: MIT
#include "problem/dtype_words.hpp"

namespace tilewise {
namespace {

struct Alias {
    std::string_view word;
    DType dtype;
};
constexpr Alias kAliases[] = {
    {"float32", DType::fp32},  {"float", DType::fp32},        {"float16", DType::fp16},    {"half", DType::fp16},
    {"bfloat16", DType::bf16}, {"float8_e4m3fn", DType::fp8}, {"float8_e5m2", DType::bf8},
};

}  // namespace

Result<DType> read_dtype(std::string_view word) {
    constexpr std::string_view kTorch = "torch.";
    const std::string_view plain = word.starts_with(kTorch) ? word.substr(kTorch.size()) : word;
    for (const Alias& alias : kAliases) {
        if (alias.word == plain) return alias.dtype;
    }
    const auto own = parse_enum<DType>(plain);
    return own ? own : parse_enum<DType>(word);
}

}  // namespace tilewise
