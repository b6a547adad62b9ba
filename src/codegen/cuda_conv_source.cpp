// SPDX-License-Identifier: MIT
#include "codegen/cuda_conv_source.hpp"

#include <fmt/core.h>

#include "problem/types.hpp"

namespace tilewise {
namespace {

// Each family says what its templates do; a config that is none of these has no kernel.
bool has_gather_template(const KernelConfig&) { return false; }
bool has_halo_template(const KernelConfig&) { return false; }
bool has_tensor_template(const KernelConfig&) { return false; }
bool has_depthwise_template(const KernelConfig&) { return false; }

std::string_view direction_of(Op op) {
    return op == Op::conv_fwd ? "forward" : op == Op::conv_bwd_data ? "backward_data" : "backward_weight";
}

// Three extents, outermost first, those of dimensions that the kernel lacks 1; 0 for what is only known at launch.
std::string extent_line(std::string_view name, const Extents& extents, int ndim) {
    std::string values;
    for (int i = 0; i < kMaxSpatialDims; ++i) {
        const int d = i - (kMaxSpatialDims - ndim);
        values += fmt::format("{}{}", i == 0 ? "" : ", ", d < 0 ? 1 : extents.rank == 0 ? 0 : extents[d]);
    }
    return fmt::format("    static constexpr int {}[3] = {{{}}};\n", name, values);
}

}  // namespace

bool has_cuda_conv_template(const KernelConfig& c) {
    switch (conv_family(c)) {
        case ConvFamily::gather: return has_gather_template(c);
        case ConvFamily::halo: return has_halo_template(c);
        case ConvFamily::tensor: return has_tensor_template(c);
        case ConvFamily::depthwise: return has_depthwise_template(c);
    }
    return false;
}

std::string cuda_conv_template(const KernelConfig& c) {
    switch (conv_family(c)) {
        case ConvFamily::gather: return c.dtype == DType::fp32 && c.warp_tile.k == 1 ? "simt_conv" : "mma_conv";
        case ConvFamily::halo: return c.op == Op::conv_bwd_weight ? "halo_weight" : "halo_conv";
        case ConvFamily::tensor: return "tensor_conv";
        case ConvFamily::depthwise: return "depthwise_conv";
    }
    return {};
}

std::string cuda_conv_lines(const KernelConfig& c) {
    std::string text =
        fmt::format("    static constexpr auto direction = tilewise::cuda::Direction::{};\n", direction_of(c.op));
    text += fmt::format("    static constexpr int ndim = {}, merge = {};\n", c.ndim, c.num_groups_to_merge);
    text += fmt::format("    static constexpr bool channels_last = {}, two_stage = {}, split_image = {};\n",
                        is_channels_last(c.layout), c.two_stage, c.split_image);
    text += fmt::format("    static constexpr bool explicit_gemm = {}, filter_3x3 = {}, filter_1x1 = {};\n",
                        c.explicit_gemm, c.specialization == Specialization::filter_3x3,
                        c.specialization == Specialization::filter_1x1_stride1);
    text += extent_line("ct_filter", c.ct_filter, c.ndim) + extent_line("ct_stride", c.ct_stride, c.ndim) +
            extent_line("ct_dilation", c.ct_dilation, c.ndim);
    return text;
}

}  // namespace tilewise
