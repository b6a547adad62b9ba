// SPDX-License-Identifier: MIT
#include "select/gpu_conv_cost.hpp"

#include <algorithm>

#include "config/family_id.hpp"
#include "family/cuda/first_layer_plan.hpp"
#include "family/cuda/patch_wgrad_plan.hpp"
#include "family/cuda/resident_filter_plan.hpp"
#include "family/cuda/shifted_wgrad_plan.hpp"
#include "problem/facts.hpp"
#include "select/depthwise_cost.hpp"
#include "select/gpu_clock.hpp"
#include "select/gpu_cost_model.hpp"
#include "select/halo_conv_cost.hpp"
#include "select/halo_weight_cost.hpp"
#include "select/tap_conv_cost.hpp"
#include "select/tensor_conv_cost.hpp"

namespace tilewise {
namespace {

// Residue classes of strided backward data meet every stride-th tap only.
GemmView worked_view(const ProblemView& view, const KernelConfig& c) {
    GemmView v = view.gemm;
    if (c.op != Op::conv_bwd_data) return v;
    const ConvShape& s = view.problem.conv;
    std::int64_t taps = v.k, classes = 1;
    for (int i = 0; i < s.in.rank; ++i) classes *= std::min(s.stride[i], s.filter[i]);
    v.k = std::max<std::int64_t>(1, taps / classes);
    return v;
}

// A product like others, but looking up addresses takes its time from the arithmetic.
double gather_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kLookUp = 1.25, kByElement = 4;
    const bool wide = c.vector_a * bytes_of(c.dtype) >= 4 && c.vector_b * bytes_of(c.dtype_b) >= 4;
    return predicted_product_us(worked_view(view, c), bytes_moved(view.problem), c, arch) *
           (wide ? kLookUp : kByElement);
}

double tap_weight_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kSecondKernelUs = 2.5, kNever = 1e9;
    const auto plan = shifted_wgrad_plan(view.problem, c, arch);
    if (!plan) return kNever;
    const double bytes_us = bytes_moved(view.problem) / (arch.memory_gbps * 1e3);
    return std::max(plan->cycles / kCyclesPerUs, bytes_us) + arch.launch_us + (c.two_stage ? kSecondKernelUs : 0);
}

double halo_first_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kNever = 1e9;
    const auto plan = first_layer_plan(view.problem, c, arch);
    if (!plan) return kNever;
    return std::max(plan->cycles / kCyclesPerUs, bytes_moved(view.problem) / (arch.memory_gbps * 1e3)) + arch.launch_us;
}

}  // namespace

double predicted_gpu_conv_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    switch (family_of(c)) {
        case FamilyId::im2col_conv: return tensor_conv_us(view, c, arch);
        case FamilyId::first_layer_conv: return halo_first_us(view, c, arch);
        case FamilyId::shifted_wgrad: return tap_weight_us(view, c, arch);
        case FamilyId::resident_filter_conv: return tap_conv_us(view, c, arch);
        case FamilyId::patch_wgrad: return halo_weight_us(view, c, arch);
        case FamilyId::patch_conv:
        case FamilyId::patch_box_conv: return halo_conv_us(view, c, arch);
        case FamilyId::depthwise_any:
        case FamilyId::depthwise_strips:
        case FamilyId::depthwise_channel_slice:
        case FamilyId::depthwise_toeplitz:
        case FamilyId::depthwise_block_diagonal: return predicted_depthwise_us(view, c, arch);
        default: return gather_us(view, c, arch);
    }
}

}  // namespace tilewise
