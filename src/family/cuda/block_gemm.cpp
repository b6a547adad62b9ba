// SPDX-License-Identifier: MIT
#include "family/cuda/block_gemm.hpp"

#include <bit>

#include "config/geometry.hpp"
#include "problem/facts.hpp"

namespace tilewise::block_gemm {
namespace {

bool along_k(const KernelConfig& c) { return is_row(c.layout, 0) && !is_row(c.layout, 1); }

// Waves that share out k take eights of it each, and leave their sums where the operands were.
bool can_share_k(const KernelConfig& c) {
    constexpr int kEight = 8, kSumBytes = 4;
    const int eights = c.tile.k / (kEight * c.wave.k);
    const std::int64_t sums = std::int64_t{c.wave.k - 1} * c.tile.m * c.tile.n * kSumBytes;
    const std::int64_t buffers =
        std::int64_t{c.stages} * (c.tile.m + c.tile.n) * c.tile.k * static_cast<std::int64_t>(bytes_of(c.dtype));
    return c.stream_k == StreamK::off && c.tile.k == eights * kEight * c.wave.k &&
           std::has_single_bit(static_cast<unsigned>(eights)) && sums <= buffers;
}

}  // namespace

bool across_k(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !along_k(c) && refuse(out, TILEWISE_TEXT("layout {}", name_of(c.layout)),
                                 TILEWISE_TEXT("A and B that lie along k: rcr or rcc"));
}

bool uneven_k(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.wave.k != 1 && !can_share_k(c) &&
           refuse(out, TILEWISE_TEXT("{} waves along k of {}", c.wave.k, c.tile.k),
                  TILEWISE_TEXT("a power of two of eights for each, no stream_k, and room for their sums"));
}

}  // namespace tilewise::block_gemm
