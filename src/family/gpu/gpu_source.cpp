// SPDX-License-Identifier: MIT
#include "family/gpu/gpu_source.hpp"

#include <fmt/core.h>

#include <cctype>

#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "config/workspace.hpp"
#include "family/launch_spec.hpp"
#include "family/source_text.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Whether the neighbours in memory of the operand are neighbours along the axis.
bool is_along(const KernelConfig& c, int operand, Axis axis) { return contiguous_axis(c, operand) == axis; }

std::string common_lines(const KernelConfig& c, const LaunchSpec& launch) {
    std::string text = "    using Chain = TILEWISE_CHAIN;\n";
    for (const auto& [name, dtype] : {std::pair{"A", c.dtype}, {"B", c.dtype_b}, {"Out", c.dtype_out}}) {
        text += fmt::format("    using {} = tilewise::gpu::{};\n", name, element_type(dtype));
    }
    text += shape_lines("tile", c.tile) + shape_lines("wave", c.wave) + shape_lines("warp", c.warp_tile);
    text += fmt::format("    static constexpr auto pipeline = tilewise::gpu::Pipeline::{};\n", name_of(c.pipeline));
    text += fmt::format("    static constexpr auto math = tilewise::gpu::Math::{};\n", name_of(c.math));
    text += fmt::format("    static constexpr bool a_row = {}, b_row = {}, c_row = {};\n", is_along(c, 0, Axis::k),
                        is_along(c, 1, Axis::n), is_along(c, 2, Axis::n));
    text += fmt::format("    static constexpr auto stream_k = tilewise::gpu::StreamK::{};\n", name_of(c.stream_k));
    text += fmt::format("    static constexpr int stages = {}, cluster_m = {}, cluster_n = {}, producer_waves = {};\n",
                        c.stages, c.cluster.m, c.cluster.n, c.producer_waves);
    text += fmt::format("    static constexpr int vector_a = {}, vector_b = {}, vector_c = {};\n", c.vector_a,
                        c.vector_b, c.vector_c);
    text += fmt::format("    static constexpr bool staged_epilogue = {}, swap_ab = {}, cluster_k = {};\n",
                        c.epilogue == Epilogue::cshuffle, c.swap_ab, c.cluster_k);
    if (launch.compute_registers > 0) {
        text += fmt::format("    static constexpr int copy_registers = {}, compute_registers = {};\n",
                            launch.copy_registers, launch.compute_registers);
    }
    text +=
        fmt::format("    static constexpr int threads = {}, shared_bytes = {};\n", launch.threads, launch.shared_bytes);
    if (!is_conv(c.op) && c.blocks_per_unit != 1) {
        text += fmt::format("    static constexpr int blocks_per_unit = {};\n", c.blocks_per_unit);
    }
    return text;
}

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

std::string conv_lines(const KernelConfig& c) {
    std::string text =
        fmt::format("    static constexpr auto direction = tilewise::Direction::{};\n", direction_of(c.op));
    text += fmt::format("    static constexpr int ndim = {}, merge = {}, blocks_per_unit = {};\n", c.ndim,
                        c.num_groups_to_merge, c.blocks_per_unit);
    text += fmt::format("    static constexpr bool channels_last = {}, two_stage = {}, split_image = {};\n",
                        is_channels_last(c.layout), c.two_stage, c.split_image);
    text += fmt::format("    static constexpr bool explicit_gemm = {}, filter_3x3 = {}, filter_1x1 = {};\n",
                        c.explicit_gemm, c.specialization == Specialization::filter_3x3,
                        c.specialization == Specialization::filter_1x1_stride1);
    text += extent_line("ct_filter", c.ct_filter, c.ndim) + extent_line("ct_stride", c.ct_stride, c.ndim) +
            extent_line("ct_dilation", c.ct_dilation, c.ndim);
    return text;
}

// Kernels whose sums meet in the workspace when a launch splits them have a second one, which takes a tenth of the compiler's time.
bool leaves_parts(const KernelConfig& c) {
    KernelConfig split = c;
    if (c.stream_k == StreamK::off) split.split_k = 2;
    return sums_in_workspace(split);
}

// "GPU_GEMV" of gpu/gemv, "CUDA_PATCH_CONV" of cuda/patch_conv/patch_conv.
std::string macro_of(std::string_view header) {
    std::string text = fmt::format("{}_{}", header.substr(0, header.find('/')), header.substr(header.rfind('/') + 1));
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

}  // namespace

std::string gpu_source(const GpuTemplate& from, const KernelConfig& c, const ArchSpec& arch, std::string_view lines) {
    constexpr int kWarpgroupRows = 64;
    std::string text = common_lines(c, launch_spec(c, arch));
    if (is_conv(c.op)) text += conv_lines(c);
    text += lines;
    return fmt::format(
        "// {}\n#define TILEWISE_WGMMA_COLUMNS {}\n#include \"{}\"\n#include \"{}.hpp\"\n\n"
        "namespace {{\nstruct Config {{\n{}}};\n}}  // namespace\n\n"
        "TILEWISE_{}(Config)\n{}{}{}",
        code_name(c), c.warp_tile.m == kWarpgroupRows ? c.warp_tile.n : 0, facts_of(arch.backend).primitives,
        from.header, text, macro_of(from.header), leaves_parts(c) ? from.second_kernel : "",
        packs_operands(c, arch) ? "TILEWISE_GPU_PACK(Config)\n" : "",
        c.pipeline == Pipeline::preshuffle ? "TILEWISE_GPU_PACK_B(Config)\n" : "");
}

std::string chain_line(const std::optional<Chain>& chain) {
    if (!chain) return "#define TILEWISE_CHAIN tilewise::gpu::RunTimeChain\n";
    std::string text = fmt::format("#define TILEWISE_CHAIN tilewise::gpu::Chain<{}, tilewise::KernelScale::{}",
                                   chain->beta, name_of(chain->scale));
    for (const EpilogueOp op : chain->ops) text += fmt::format(", tilewise::KernelEpilogueOp::{}", name_of(op));
    return text + ">\n";
}

std::string emulated_source(const std::string& source, Backend backend) {
    return std::string(facts_of(backend).twins) + source;
}

}  // namespace tilewise
