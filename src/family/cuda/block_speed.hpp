// SPDX-License-Identifier: MIT
// How fast the blocks of a product are, by their config and the arch alone: the share of the peak that they reach, how many share a unit,
// how they copy. Counted for every kind of number (base/work.hpp).
#pragma once

#include <algorithm>
#include <cmath>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "family/work_problem.hpp"

namespace tilewise::block_speed {

inline bool is_plain_arithmetic(const KernelConfig& c) { return c.dtype == DType::fp32 && c.warp_tile.k == 1; }

inline bool copies_ahead(const KernelConfig& c) {
    return c.pipeline == Pipeline::comp_async || c.pipeline == Pipeline::mem;
}

// The share that plain arithmetic reaches: the more sums a thread has, the fewer reads of shared memory for each product; every
// tile costs a barrier and the addresses of its copies, more of them where they bring single elements.
template <class N>
N plain_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.simt_gemm;
    // Reads for a product, of a thread whose sums are about a square.
    constexpr double kReadsOfSums = 2.1;
    const double reads = kReadsOfSums / std::sqrt(static_cast<double>(accumulators_per_thread(c, arch)));
    const N more_reads = longest({N(0.0), counted<N>("reads", reads) - N(price.least_reads)});
    N share = N(price.reached_share) / (N(1.0) + N(price.read_share) * more_reads) /
              (N(1.0) + N(price.tile_steps) / c.tile.k);
    if (c.warp_tile.n < 64) share = share * N(price.narrow_share);
    if (c.vector_a == 1 || c.vector_b == 1) share = share * N(price.single_share);
    if (!copies_ahead(c)) share = share * N(price.not_ahead_share);
    return share;
}

// The share that fp64 matrix units reach, whose peak is that of plain fp32: operands are converted on their way, the more for each
// product the fewer products a wave makes of them.
template <class N>
N double_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.fp64_gemm;
    const double rows = static_cast<double>(c.tile.m) / c.wave.m, columns = static_cast<double>(c.tile.n) / c.wave.n;
    const double conversions = (rows + columns) / (rows * columns);
    const N more = longest({N(0.0), counted<N>("conversions", conversions) - N(price.least_conversions)});
    return N(price.reached_share) / (N(1.0) + N(price.conversion_share) * more) /
           (N(1.0) + N(price.tile_steps) / c.tile.k);
}

// mma.sync reaches a third of the peak on chips that have warpgroups; loads through registers halve it.
template <class N>
N mma_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.mma_gemm;
    const double shape = std::min(1.0, std::sqrt(static_cast<double>(c.tile.m) * c.tile.n) / 128.0);
    const bool has_warpgroups = arch.wide_wave_rows > 0 && bytes_of(c.dtype) < 4;
    const N small = N(price.small_tile_share);
    N share = N(has_warpgroups ? price.beside_warpgroups_share : price.alone_share) *
              (small + (N(1.0) - small) * counted<N>("tile", shape));
    if (!copies_ahead(c)) share = share * N(price.through_registers_share);
    // Lines that begin anywhere are put together, which takes longer than to multiply them.
    const bool anywhere = (c.vector_a == 1 || c.vector_b == 1) && bytes_of(c.dtype) < 4;
    return anywhere ? share * N(price.anywhere_share) : share;
}

// The share of a unit's peak that a kernel's inner loop reaches. Warpgroup products run at full speed from 128 columns on.
template <class N>
N inner_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    if (has_wide_waves(c, arch)) {
        const auto& price = arch.prices.wgmma_gemm;
        const N narrow = N(price.narrow_share);
        return N(price.whole_share) *
               (narrow + (N(1.0) - narrow) * counted<N>("columns", std::min(1.0, c.warp_tile.n / 128.0)));
    }
    if (family_of(c) == FamilyId::fp64_gemm) return double_efficiency<N>(c, arch);
    return is_plain_arithmetic(c) ? plain_efficiency<N>(c, arch) : mma_efficiency<N>(c, arch);
}

// Blocks that share a unit: a persistent kernel has one, others as many as shared memory, registers and threads allow.
inline double blocks_per_unit(const KernelConfig& c, const ArchSpec& arch) {
    if (c.persistent) return 1;
    constexpr double kOwnBytes = 1024, kRegisterStep = 8, kMostRegisters = 255, kMostThreads = 2048, kMost = 32;
    constexpr double kOtherRegistersWide = 48, kOtherRegisters = 70;
    const auto threads = static_cast<double>(threads_per_block(c, arch));
    const bool wide = has_wide_waves(c, arch);
    // Warpgroups that hand registers over take all there are.
    const bool whole = wide && wave_count(c) > 1 && !c.cluster_k;
    const double own =
        static_cast<double>(accumulators_per_thread(c, arch)) + (wide ? kOtherRegistersWide : kOtherRegisters);
    const double each = std::ceil(std::min(kMostRegisters, own) / kRegisterStep) * kRegisterStep;
    const double by_registers = whole ? 1 : std::floor(static_cast<double>(arch.registers) / (each * threads));
    const auto block_bytes = static_cast<double>(block_shared_bytes(c, arch));
    const double by_memory = std::floor(static_cast<double>(arch.shared_bytes) / (block_bytes + kOwnBytes));
    // As many as the config asks for get the registers they need.
    return std::clamp(std::min({by_memory, by_registers, std::floor(kMostThreads / threads)}),
                      static_cast<double>(c.blocks_per_unit), kMost);
}

// How much longer threads take to copy 16-bit elements by accesses that are less than whole. Single elements are put together
// from whole accesses, which has a price of its own.
template <class N>
N narrow_copies(const KernelConfig& c, const ArchSpec& arch, int operand) {
    if (vector_width(c, operand) == 1 || bytes_of(operand_dtype(c, operand)) != 2) return 1.0;
    const double accesses = static_cast<double>(arch.load_bytes) / static_cast<double>(access_bytes(c, operand));
    return N(1.0) + N(arch.prices.block_product.narrow_copy_share) * (accesses - 1);
}

// The part of its speed that the arithmetic of a unit with so many blocks reaches.
template <class N>
N filled(const KernelConfig& c, const ArchSpec& arch, double sharing) {
    // A warpgroup that has the unit to itself has more of the clock; plain arithmetic leaves gaps where there are few warps, the
    // more the fewer sums they have.
    if (has_wide_waves(c, arch)) {
        return wave_count(c) == 1 && sharing == 1 ? N(arch.prices.wgmma_gemm.alone_share) : N(1.0);
    }
    if (!is_plain_arithmetic(c)) return 1.0;
    const double warps = sharing * static_cast<double>(wave_count(c));
    if (family_of(c) == FamilyId::fp64_gemm) {
        const auto& price = arch.prices.fp64_gemm;  // a warp alone waits for each of its products
        return shortest({N(1.0), power(N(warps) / N(price.enough_warps), N(price.gap_exponent))});
    }
    const auto& price = arch.prices.simt_gemm;
    const N gap = shortest(
        {N(price.widest_gap_exponent), N(price.gap_sums) / static_cast<double>(accumulators_per_thread(c, arch))});
    return shortest({N(1.0), power(N(warps) / N(price.enough_warps), gap)});
}

// Results of a tile that leave otherwise than by whole accesses. Split sums count as well.
template <class N>
N store_us(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.block_product;
    const bool wide = has_wide_waves(c, arch), whole = access_bytes(c, 2) == arch.load_bytes;
    // Warpgroups shift rows of 16 bits, or write element by element, where tensor copies cannot; other warps do where accesses are
    // less than whole.
    const bool by_elements = wide ? (c.swap_ab || !whole) && !c.cluster_k : !whole;
    const bool shifts = bytes_of(c.dtype_out) == 2 && is_row(c.layout, 2) && !c.swap_ab && c.split_k == 1;
    if (!by_elements) return 0.0;
    const double elements = c.tile.m * c.tile.n;
    return wide ? N(elements) / N(shifts ? price.shifted_elements_per_us : price.elements_per_us)
                : N(elements) / (N(price.single_elements_per_us) * c.vector_c);
}

}  // namespace tilewise::block_speed
