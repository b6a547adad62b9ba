// SPDX-License-Identifier: MIT
// Rules of the families that stage patches of pixels and read them shifted for every tap.
#pragma once

#include "family/code_rules.hpp"

namespace tilewise::patch_rules {

inline constexpr std::string_view kConvFixed[] = {"cluster",  "producer_waves", "split_k",
                                                  "stream_k", "explicit_gemm",  "split_image"};

bool other_conv_shape(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_conv_types(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool narrow_chunks(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool narrow_results(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_specialization(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

inline constexpr ConfigRule kConvTypes = {"code_types", "8 bits in forward, 16 in both directions", other_conv_types};
inline constexpr ConfigRule kConvShape = {"code_warp_tile", "mma.sync has 16 rows and 8 columns", other_conv_shape};
inline constexpr ConfigRule kChunks = {"code_vectors", "patches come in chunks of 16 bytes", narrow_chunks};
inline constexpr ConfigRule kResultWords = {"code_results", "results leave in words", narrow_results};
inline constexpr ConfigRule kTapRows = {
    "code_specialization", "rows of 3x3 taps share what they read", other_specialization,
    [](KernelConfig& c, const ArchSpec&) { c.specialization = Specialization::none; }};

}  // namespace tilewise::patch_rules
