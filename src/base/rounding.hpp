// SPDX-License-Identifier: MIT
// Divisions of sizes that are not negative. Most units are 1, of strides and groups, and a division takes longer than all else that is
// done with a size.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr std::int64_t whole_div(std::int64_t size, std::int64_t unit) { return unit == 1 ? size : size / unit; }
constexpr std::int64_t ceil_div(std::int64_t size, std::int64_t unit) { return whole_div(size + unit - 1, unit); }
constexpr std::int64_t round_up(std::int64_t size, std::int64_t unit) { return ceil_div(size, unit) * unit; }

}  // namespace tilewise
