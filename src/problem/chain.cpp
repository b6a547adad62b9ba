// SPDX-License-Identifier: MIT
#include "problem/chain.hpp"

#include <fmt/core.h>

#include "base/text.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kNone = "none", kBeta = "beta", kTensor = "scale_tensor", kRow = "scale_row";

}  // namespace

Chain chain_of(const Problem& p) { return {p.beta, p.scale, p.epilogue}; }

std::string print_chain(const Chain& chain) {
    if (chain.is_plain()) return std::string(kNone);
    std::string text;
    const auto add = [&](std::string_view word) { text += fmt::format("{}{}", text.empty() ? "" : "+", word); };
    if (chain.scale != Scale::none) add(chain.scale == Scale::tensor ? kTensor : kRow);
    if (chain.beta) add(kBeta);
    for (const EpilogueOp op : chain.ops) add(name_of(op));
    return text;
}

Result<Chain> parse_chain(std::string_view text) {
    Chain chain;
    if (text == kNone) return chain;
    for (const std::string_view word : split(text, '+')) {
        if (word == kTensor || word == kRow) {
            chain.scale = word == kTensor ? Scale::tensor : Scale::row;
        } else if (word == kBeta) {
            chain.beta = true;
        } else {
            const auto op = parse_enum<EpilogueOp>(word);
            if (!op) return op.error();
            chain.ops.push_back(*op);
        }
    }
    Problem some;  // whose epilogue it might be
    some.gemm = {.m = 1, .n = 1, .k = 1};
    some.epilogue = chain.ops;
    if (const auto why = check_problem(some)) {
        return usage_error(fmt::format("epilogue '{}': have {}; need {}", text, why->have, why->need));
    }
    return chain;
}

}  // namespace tilewise
