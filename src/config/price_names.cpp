// SPDX-License-Identifier: MIT
#include "config/price_names.hpp"

#include <fmt/core.h>

#include <cstdint>

namespace tilewise {

std::optional<std::size_t> price_index(const ArchSpec& arch, const double* price) {
    const auto prices = all_prices(arch.prices);
    const auto first = reinterpret_cast<std::uintptr_t>(prices.data()), at = reinterpret_cast<std::uintptr_t>(price);
    if (at < first || at >= first + prices.size_bytes()) return std::nullopt;
    return (at - first) / sizeof(Price);
}

std::string price_name(std::size_t index) {
    for (const PriceGroup& group : price_groups()) {
        if (index < group.first + group.prices.size()) {
            return fmt::format("{}.{}", group.name, group.prices[index - group.first]);
        }
    }
    return {};
}

std::string price_name(const ArchSpec& arch, const double* price) {
    if (const auto index = price_index(arch, price)) return price_name(*index);
    for (const Peak& peak : arch.peaks) {
        if (&peak.tflops == price) return fmt::format("peaks.tflops.{}", name_of(peak.dtype));
    }
    if (price == &arch.memory_gbps) return "peaks.memory_gbps";
    if (price == &arch.cache_gbps) return "peaks.cache_gbps";
    if (price == &arch.pack_gbps) return "peaks.pack_gbps";
    return price == &arch.launch_us ? "peaks.launch_us" : "";
}

}  // namespace tilewise
