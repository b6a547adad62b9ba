// SPDX-License-Identifier: MIT
// Rules that GEMM and convolution on MFMA share, since the loops and the arithmetic are the same (mfma_gemm.cpp has them).
#pragma once

#include "config/rules.hpp"

namespace tilewise::mfma_gemm {

bool other_square(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_depth(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_buffers(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool uneven_waves(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool crosses_runs(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

}  // namespace tilewise::mfma_gemm
