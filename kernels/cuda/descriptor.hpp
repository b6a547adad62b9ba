// SPDX-License-Identifier: MIT
// Numbers that Hopper's instructions (hopper.hpp) and their host twins take: hints for the L2 cache, and where a warpgroup
// product finds an operand.
#pragma once
#include "../gpu/language.hpp"

namespace tilewise::cuda {

// Which lines the L2 cache should keep: those that other blocks read soon, or that nobody reads again.
inline constexpr unsigned long long kKeepFirst = 0x12f0000000000000ull;  // evict_first
inline constexpr unsigned long long kKeepNormal = 0x1000000000000000ull;
inline constexpr unsigned long long kKeepLast = 0x14f0000000000000ull;  // evict_last

// Where a product finds an operand: lines of 128 (or 64, 32) bytes in the swizzle of as many, 8 lines to a block. Lines
// along k: `stride` is between blocks of 8 rows. Lines along m or n: `stride` is between blocks of 8 k, `leading` between
// lines' worth (64 elements of 16 bits) of rows.
template <int kLineBytes = 128>
TILEWISE_DEVICE unsigned long long operand_at(unsigned address, unsigned leading_bytes, unsigned stride_bytes) {
    static_assert(kLineBytes == 128 || kLineBytes == 64 || kLineBytes == 32);
    const auto field = [](unsigned bytes) { return static_cast<unsigned long long>((bytes & 0x3ffff) >> 4); };
    constexpr unsigned long long kSwizzle = (kLineBytes == 128 ? 1ull : kLineBytes == 64 ? 2ull : 3ull) << 62;
    return field(address) | field(leading_bytes) << 16 | field(stride_bytes) << 32 | kSwizzle;
}

}  // namespace tilewise::cuda
