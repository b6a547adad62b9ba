// SPDX-License-Identifier: MIT
// Divisions that round up, of sizes that are not negative.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr std::int64_t divide_up(std::int64_t size, std::int64_t unit) { return (size + unit - 1) / unit; }
constexpr std::int64_t round_up(std::int64_t size, std::int64_t unit) { return divide_up(size, unit) * unit; }

}  // namespace tilewise
