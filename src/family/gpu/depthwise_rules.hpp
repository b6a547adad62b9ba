// SPDX-License-Identifier: MIT
// Rules that the depthwise families share.
#pragma once

#include <string>

#include "family/code_rules.hpp"

namespace tilewise::depthwise_rules {

inline constexpr Pipeline kBasic[] = {Pipeline::basic_v1};
inline constexpr std::string_view kSecondKernel = "TILEWISE_GPU_REDUCE_DEPTHWISE(Config)\n";

// All of them, and those without matrix products.
#define TILEWISE_DEPTHWISE_FIXED                                                                                   \
    "epilogue", "gather", "math", "persistent", "two_stage", "split_image", "cluster", "producer_waves", "stages", \
        "double_smem_buffer", "swap_ab"
inline constexpr std::string_view kMatrixFixed[] = {TILEWISE_DEPTHWISE_FIXED};
inline constexpr std::string_view kSliceFixed[] = {TILEWISE_DEPTHWISE_FIXED, "cluster_k"};
inline constexpr std::string_view kPlainFixed[] = {TILEWISE_DEPTHWISE_FIXED, "cluster_k", "blocks_per_unit"};
#undef TILEWISE_DEPTHWISE_FIXED

// Constants of the source.
std::string depthwise_lines(const KernelConfig& config, const ArchSpec& arch);

bool split_sums(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_types(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_matrix_vectors(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool dilated(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

inline constexpr ConfigRule kSplitWeights = {"code_split_k", "only backward weight adds up parts", split_sums,
                                             [](KernelConfig& c, const ArchSpec&) { c.split_k = 1; }};
inline constexpr ConfigRule kMatrixTypes = {"code_types", "matrix units multiply 16-bit elements", other_types};
inline constexpr ConfigRule kMatrixVectors = {"code_vectors", "channels move by accesses of 16 bytes",
                                              other_matrix_vectors};
inline constexpr ConfigRule kNotDilated = {"code_dilation", "taps are neighbours", dilated};

}  // namespace tilewise::depthwise_rules
