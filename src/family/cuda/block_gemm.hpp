// SPDX-License-Identifier: MIT
// Rules of the GEMM families whose threads all load and compute: mma.sync, plain fp32, and fp32 in fp64.
#pragma once

#include "family/code_rules.hpp"

namespace tilewise::block_gemm {

inline constexpr Pipeline kPipelines[] = {Pipeline::basic_v1,  Pipeline::mem,        Pipeline::compv3,
                                          Pipeline::compv4,    Pipeline::comp_async, Pipeline::basic_async_v1,
                                          Pipeline::preshuffle};
inline constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "swap_ab", "cluster_k"};

bool across_k(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool uneven_k(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

}  // namespace tilewise::block_gemm
