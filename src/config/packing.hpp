// SPDX-License-Identifier: MIT
// Operands that a kernel packs into the workspace before it reads them: which, how large, where.
#pragma once

#include <cstdint>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "kernels/common/packed_b.hpp"
#include "kernels/common/packing.hpp"
#include "problem/facts.hpp"

namespace tilewise {

// Warpgroup kernels read A and B by tensor copies; one whose vectors are narrower than these need packs them first.
bool packs_operand(const KernelConfig& config, const ArchSpec& arch, int operand);
bool packs_operands(const KernelConfig& config, const ArchSpec& arch);  // any of them

PackedMatrices packed_matrices(const Problem& problem, int operand);
// From the start of the workspace.
std::int64_t packed_offset(const Problem& problem, const KernelConfig& config, const ArchSpec& arch, int operand);

// B as a GPU kernel of the pipeline preshuffle reads it.
PackedB packed_b(const Problem& problem, const KernelConfig& config);

}  // namespace tilewise
