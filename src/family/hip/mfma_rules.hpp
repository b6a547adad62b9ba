// SPDX-License-Identifier: MIT
// Rules that GEMM and convolution on MFMA share, since the loops and the arithmetic are the same (mfma_gemm.cpp has them).
#pragma once

#include <optional>
#include <string>

#include "config/rules.hpp"
#include "family/launch_plan.hpp"
#include "family/launch_spec.hpp"

namespace tilewise::mfma_gemm {

bool other_square(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_depth(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_buffers(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool odd_groups(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool crowded(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool uneven_waves(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool crosses_runs(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

// The plan, unless its launch has more threads than HIP takes.
std::optional<LaunchPlan> within_grid(std::optional<LaunchPlan> plan, Rejected* why);

// A block with as many buffers as its loop fills, and what the loop asks of a source's config.
LaunchSpec spec(const KernelConfig& config, const ArchSpec& arch);
std::string loop_lines(const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise::mfma_gemm
