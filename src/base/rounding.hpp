// SPDX-License-Identifier: MIT
// Divisions that round up, of sizes that are not negative.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr std::int64_t ceil_div(std::int64_t size, std::int64_t unit) { return (size + unit - 1) / unit; }
constexpr std::int64_t round_up(std::int64_t size, std::int64_t unit) { return ceil_div(size, unit) * unit; }

}  // namespace tilewise
