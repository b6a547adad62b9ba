// SPDX-License-Identifier: MIT
// Counts what the register micro-kernels of the CPU do, which products and convolutions have in common. Prices are in steps: one vector
// multiply-add at the arch's peak.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/work.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

inline constexpr int kAmxDepth = 32;  // warp tiles this deep are AMX tiles, which are always computed whole

// 32-bit sums in one vector.
std::int64_t vector_lanes(const ArchSpec& arch);

// How long a step takes.
template <class N>
N step_us(const KernelConfig& config, const ArchSpec& arch);

// A micro-kernel reads `vectors` vectors of B and broadcasts `rows` values of A for rows x vectors products; fewer sums than
// the multiplier is long leave it idle, which counts as products. Sums of a panel that is not whole take a detour through
// a scratch tile.
struct MicroKernelWork {
    double products = 0;  // vector multiply-adds
    double vector_reads = 0;
    double row_reads = 0;
    double calls = 0;    // of micro-kernels
    double stores = 0;   // vectors of sums, after every block of k
    double detours = 0;  // vectors of sums that take one

    MicroKernelWork& operator+=(const MicroKernelWork& more);
};
// In steps, of which a product is one, by the prices of a group.
template <class N, class Group>
N micro_kernel_steps(const MicroKernelWork& work, const Group& price) {
    return counted<N>("products", work.products) + term<N>("vector reads", work.vector_reads, price.vector_read_steps) +
           term<N>("row reads", work.row_reads, price.row_read_steps) + term<N>("calls", work.calls, price.call_steps) +
           term<N>("stores", work.stores, price.store_steps) + term<N>("detours", work.detours, price.detour_steps);
}

// The least time of a vector multiply-add of depth 1 with the reads it needs, on a config's micro-kernels, which may not all be whole.
template <class Group>
double least_product_us(const KernelConfig& c, const ArchSpec& arch, const Group& price) {
    const double us = step_us<double>(c, arch) / c.warp_tile.k;
    if (c.warp_tile.k >= kAmxDepth) return us;
    const double vectors = static_cast<double>(std::max<std::int64_t>(c.warp_tile.n / vector_lanes(arch), 1));
    return us * (1 + double(price.vector_read_steps) / c.warp_tile.m + double(price.row_read_steps) / vectors);
}

// An m x n x k product, `times` times; after every `block_k` sums are stored.
struct ProductShape {
    std::int64_t m, n, k, block_k;
    bool any_width = false;  // the last panel takes only the vectors it needs, whatever the rows
};
MicroKernelWork product_work(const ProductShape& shape, double times, const KernelConfig& config, std::int64_t lanes);

}  // namespace tilewise
