// SPDX-License-Identifier: MIT
#include "learn/kernel_kind.hpp"

#include <fmt/core.h>

#include "base/text.hpp"

namespace tilewise {
namespace {

struct Flag {
    std::string_view word;
    bool KernelKind::*flag;
};
constexpr Flag kFlags[] = {{"swap", &KernelKind::swap},
                           {"cluster", &KernelKind::cluster},
                           {"split", &KernelKind::split},
                           {"stream", &KernelKind::stream}};

}  // namespace

KernelKind kind_of(const KernelConfig& c) {
    return {family_of(c), c.warp_tile.m, c.swap_ab, c.cluster_k, c.split_k > 1, c.stream_k != StreamK::off};
}

std::string print_kind(const KernelKind& kind) {
    std::string text = fmt::format("{} m{}", name_of(kind.family), kind.rows);
    for (const auto& [word, flag] : kFlags) {
        if (kind.*flag) text += fmt::format(" {}", word);
    }
    return text;
}

std::optional<KernelKind> parse_kind(std::string_view text) {
    const auto words = split(text, ' ');
    const auto family = parse_enum<FamilyId>(words.front());
    if (!family || words.size() < 2 || !words[1].starts_with('m')) return std::nullopt;
    const auto rows = parse_integer(words[1].substr(1));
    constexpr int kMostRows = 1 << 16;
    if (!rows || *rows < 0 || *rows > kMostRows) return std::nullopt;
    KernelKind kind{*family, static_cast<int>(*rows)};
    for (const auto& [word, flag] : kFlags) {
        for (std::size_t i = 2; i < words.size(); ++i) kind.*flag = kind.*flag || words[i] == word;
    }
    if (print_kind(kind) != text) return std::nullopt;
    return kind;
}

}  // namespace tilewise
