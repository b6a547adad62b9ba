// SPDX-License-Identifier: MIT
// The words for the numbers that work is priced by: those of its chip's file, such as block_product.fill_us and peaks.memory_gbps.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "config/arch_spec.hpp"

namespace tilewise {

// Which of all_prices() it is; none for a rate of the chip, which belongs to no group.
std::optional<std::size_t> price_index(const ArchSpec& arch, const double* price);
std::string price_name(std::size_t index);
std::string price_name(const ArchSpec& arch, const double* price);

}  // namespace tilewise
