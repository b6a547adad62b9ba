// SPDX-License-Identifier: MIT
#include "config/arch_spec.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "problem/dtype_words.hpp"

namespace tilewise {

std::string print_pair(const DTypePair& pair) {
    std::string text(name_of(pair.a));
    if (pair.b != pair.a) text += fmt::format("_{}", name_of(pair.b));
    return text;
}

Result<DTypePair> parse_pair(std::string_view text) {
    // Other libraries' words for 8-bit floats have a _ of their own.
    if (const auto one = read_dtype(text)) return DTypePair{*one, *one};
    const auto words = split(text, '_');
    const auto a = read_dtype(words.front());
    if (!a) return a.error();
    const auto b = read_dtype(words.back());
    if (!b || words.size() > 2) {
        return usage_error(fmt::format("'{}' is not a dtype or a pair such as fp8_bf8", text.substr(0, 64)));
    }
    return DTypePair{*a, *b};
}

Operator operator_of(const KernelConfig& c) {
    if (c.specialization == Specialization::depthwise) return Operator::depthwise;
    if (c.pipeline == Pipeline::preshuffle) return Operator::preshuffle;
    switch (c.op) {
        case Op::gemm: return Operator::gemm;
        case Op::conv_fwd: return Operator::conv_fwd;
        case Op::conv_bwd_data: return Operator::conv_bwd_data;
        case Op::conv_bwd_weight: return Operator::conv_bwd_weight;
    }
    return Operator::gemm;
}

const WarpTiles* ArchSpec::find_warp_tiles(const DTypePair& dtypes) const {
    for (const WarpTiles& entry : warp_tiles) {
        if (entry.dtypes == dtypes) return &entry;
    }
    return nullptr;
}

bool ArchSpec::has_option(std::string_view field, Op op) const {
    const ConfigField* found = find_field(field);
    return found && options[static_cast<std::size_t>(found - config_fields().data())][static_cast<std::size_t>(op)];
}

bool ArchSpec::is_known_bad(std::string_view rule) const {
    return std::find(known_bad.begin(), known_bad.end(), rule) != known_bad.end();
}

void set_chip(ArchSpec& arch, const Chip& chip) {
    arch.chip = chip.name;
    arch.units = chip.units;
    arch.cache_bytes = chip.cache_bytes;
    arch.peaks = chip.peaks;
    arch.memory_gbps = chip.memory_gbps;
    arch.cache_gbps = chip.cache_gbps;
    arch.pack_gbps = chip.pack_gbps;
    arch.launch_us = chip.launch_us;
    arch.prices = chip.prices;
    if (!arch.json.object()) return;
    Json::Object members;
    for (const auto& [key, value] : *arch.json.object()) members.push_back({key, key == "chip" ? chip.json : value});
    arch.json = Json(std::move(members));
}

}  // namespace tilewise
