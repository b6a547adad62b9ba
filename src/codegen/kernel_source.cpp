// SPDX-License-Identifier: MIT
#include "codegen/kernel_source.hpp"

#include <fmt/core.h>

#include "codegen/cuda_source.hpp"
#include "codegen/source_text.hpp"
#include "config/config_name.hpp"
#include "config/geometry.hpp"

namespace tilewise {
namespace {

// Outermost first over all dimensions that kernels know; zeros where nothing is known.
std::string extents_line(std::string_view name, const Extents& extents) {
    std::string values;
    for (int i = 0; i < kMaxSpatialDims; ++i) {
        const int d = i - (kMaxSpatialDims - extents.rank);
        values += fmt::format("{}{}", i == 0 ? "" : ", ", extents.rank == 0 ? 0 : d < 0 ? 1 : extents[d]);
    }
    return fmt::format("    static constexpr int {}[3] = {{{}}};\n", name, values);
}

// Of the innermost dimension, where the config says so; 0 otherwise. The classes of backward data have taps of their own.
int inner_taps(const KernelConfig& c) {
    if (c.specialization == Specialization::filter_1x1 || c.specialization == Specialization::filter_1x1_stride1)
        return 1;
    return c.specialization == Specialization::filter_3x3 && c.op != Op::conv_bwd_data ? 3 : 0;
}

std::string conv_lines(const KernelConfig& c, const ArchSpec& arch) {
    const std::string_view direction = c.op == Op::conv_fwd        ? "forward"
                                       : c.op == Op::conv_bwd_data ? "backward_data"
                                                                   : "backward_weight";
    std::string text = fmt::format("    static constexpr auto direction = tilewise::Direction::{};\n", direction);
    text += fmt::format("    static constexpr bool two_stage = {}, split_image = {}, explicit_gemm = {};\n",
                        c.two_stage, c.split_image, c.explicit_gemm);
    if (!is_direct(c, arch)) {
        return text + fmt::format("    static constexpr int inner_taps = {};\n", inner_taps(c));
    }
    text += fmt::format("    static constexpr bool depthwise = {};\n    static constexpr int merge = {};\n",
                        c.specialization == Specialization::depthwise, c.num_groups_to_merge);
    return text + extents_line("ct_filter", c.ct_filter) + extents_line("ct_stride", c.ct_stride) +
           extents_line("ct_dilation", c.ct_dilation);
}

// Kernels walk over all dimensions that there are, so one binary serves 1-D, 2-D and 3-D: its text names one of them.
std::string any_dimensions_name(KernelConfig c) {
    c.ndim = c.default_ndim();
    return code_name(c);
}

std::string cpu_source(const KernelConfig& c, const ArchSpec& arch) {
    const std::string_view header = c.op == Op::gemm ? "gemm" : is_direct(c, arch) ? "direct_conv" : "conv";
    const std::string_view macro = c.op == Op::gemm ? "GEMM" : is_direct(c, arch) ? "DIRECT_CONV" : "CONV";
    std::string text = fmt::format("// {}\n#include \"cpu/{}.hpp\"\n\nnamespace {{\nstruct Config {{\n",
                                   any_dimensions_name(c), header);
    for (const auto& [name, dtype] : {std::pair{"A", c.dtype}, {"B", c.dtype_b}, {"Out", c.dtype_out}}) {
        text += fmt::format("    using {} = tilewise::cpu::{};\n", name, element_type(dtype));
    }
    text += shape_lines("tile", c.tile) + shape_lines("wave", c.wave) + shape_lines("warp", c.warp_tile);
    if (!is_direct(c, arch)) {  // what a direct kernel packs is always the same
        text += fmt::format("    static constexpr auto pipeline = tilewise::cpu::Pipeline::{};\n", name_of(c.pipeline));
    }
    text +=
        c.op == Op::gemm ? fmt::format("    static constexpr bool swap_ab = {};\n", c.swap_ab) : conv_lines(c, arch);
    return text + fmt::format("}};\n}}  // namespace\n\nTILEWISE_CPU_{}(Config)\n", macro);
}

}  // namespace

bool has_template(const KernelConfig& c) {
    if (c.arch.starts_with("cpu-")) return true;
    return c.arch.starts_with("sm_") && has_cuda_template(c);
}

Result<KernelSource> generate_source(const KernelConfig& c, const ArchSpec& arch) {
    if (!has_template(c) || c.arch != arch.name) {
        return unsupported_error(
            fmt::format("there is no kernel template yet for {} on {}", kernel_name(c), arch.name));
    }
    if (arch.backend == "cuda") return KernelSource{cuda_source(c, arch), {}};
    return KernelSource{cpu_source(c, arch), kernel_features(c, arch)};
}

std::vector<std::string> kernel_features(const KernelConfig& c, const ArchSpec& arch) {
    std::vector<std::string> features = arch.cpu_features;
    for (const DepthFeature& need : arch.depth_features) {
        if (need.dtype == c.dtype && need.depth == c.warp_tile.k) features.push_back(need.feature);
    }
    return features;
}

}  // namespace tilewise
