// SPDX-License-Identifier: MIT
// What the register micro-kernels of the CPU do and cost, which the models of products (cost_model.cpp) and of convolutions
// (conv_cost_model.cpp) have in common. Work is counted first and priced then. Prices are in steps: one vector
// multiply-add at the arch's peak.
#pragma once

#include <cstdint>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

inline constexpr int kAmxDepth = 32;  // warp tiles this deep are AMX tiles, which are always computed whole

// 32-bit sums in one vector.
std::int64_t vector_lanes(const ArchSpec& arch);

// The arch file's peak is that of the deepest warp tile of a type. Shallower ones multiply in fp32, or a few values at a time.
double peak_tflops(const ArchSpec& arch, const KernelConfig& config);

// How long a step takes.
double step_us(const KernelConfig& config, const ArchSpec& arch);

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
struct MicroKernelPrices {
    double vector_read, row_read, call, store, detour;  // a product is one step
};
double steps(const MicroKernelWork& work, const MicroKernelPrices& prices);

// An m x n x k product, `times` times; after every `block_k` sums are stored.
struct ProductShape {
    std::int64_t m, n, k, block_k;
    bool any_width = false;  // the last panel takes only the vectors it needs, whatever the rows
};
MicroKernelWork product_work(const ProductShape& shape, double times, const KernelConfig& config, std::int64_t lanes);

}  // namespace tilewise
