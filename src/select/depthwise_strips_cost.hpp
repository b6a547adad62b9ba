// SPDX-License-Identifier: MIT
// The time that depthwise kernels with a filter known when compiled (kernels/gpu/depthwise_strips.hpp, depthwise_weight.hpp) are
// expected to take.
#pragma once

#include "config/arch_spec.hpp"
#include "family/cuda/depthwise_spec.hpp"

namespace tilewise {

double predicted_strips_us(const Problem& problem, const KernelConfig& config, const DepthwiseSpec& spec,
                           const ArchSpec& arch);

}  // namespace tilewise
