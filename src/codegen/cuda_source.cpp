// SPDX-License-Identifier: MIT
#include "codegen/cuda_source.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "codegen/launch_spec.hpp"
#include "codegen/source_text.hpp"
#include "config/packing.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr int kWarpgroupRows = 64;  // warp tiles of so many rows are computed by warpgroup instructions
constexpr int kLineBytes = 128;     // which tensor copies fill whole

bool is_warpgroup(const KernelConfig& c) { return c.warp_tile.m == kWarpgroupRows; }

// What no CUDA template does yet.
bool asks_too_much(const KernelConfig& c) {
    return c.op != Op::gemm || c.stream_k != StreamK::off || c.pipeline == Pipeline::preshuffle ||
           c.layout == Layout::any || c.blocks_per_unit != 1 || !c.deterministic;
}

bool is_plain_arithmetic(const KernelConfig& c) { return c.dtype == DType::fp32 && c.warp_tile.k == 1; }

// mma.sync and plain fp32: blocks whose threads all load and compute.
bool has_block_template(const KernelConfig& c) {
    const bool has_loop = c.pipeline != Pipeline::compv5 && c.pipeline != Pipeline::compv6;
    return has_loop && c.scheduler == Scheduler::intrawave && c.cluster == Shape2{} && c.wave.k == 1 &&
           c.producer_waves == 0 && !c.swap_ab;
}

bool has_warpgroup_template(const KernelConfig& c) {
    const bool pipelined = c.pipeline == Pipeline::compv5 || c.pipeline == Pipeline::compv6;
    // The operand of the tile's columns, where it is contiguous along them, comes in whole lines.
    const bool columns_along_k = c.swap_ab ? is_row(c.layout, 0) : !is_row(c.layout, 1);
    const std::int64_t bytes = bytes_of(c.dtype);
    const bool whole_lines = columns_along_k || c.tile.n * bytes % kLineBytes == 0;
    constexpr int kMostBoxLines = 256;  // of one tensor copy
    const int shared_rows = std::max(c.tile.m / std::max(1, c.cluster.n), c.tile.n / std::max(1, c.cluster.m));
    // Operands that tensor copies cannot read are packed first; there is no use for widths in between.
    const auto width_fits = [&](int vector) { return vector == 1 || vector * bytes == kPackedBytes; };
    const bool copies = width_fits(c.vector_a) && width_fits(c.vector_b) && shared_rows <= kMostBoxLines &&
                        c.tile.k * bytes == kLineBytes;
    // Three products of halves need halves, which nobody puts into shared memory.
    return c.math != Math::tf32x3 && pipelined && copies && c.wave.m <= 2 && c.producer_waves == 1 && c.wave.n == 1 &&
           c.wave.k == 1 && c.warp_tile.n == c.tile.n && is_row(c.layout, 2) && whole_lines &&
           (!c.swap_ab || c.cluster == Shape2{}) && c.epilogue == Epilogue::cshuffle &&
           (c.pipeline == Pipeline::compv6 || c.wave.m == 2);
}

std::string common_lines(const KernelConfig& c, const LaunchSpec& launch) {
    std::string text;
    for (const auto& [name, dtype] : {std::pair{"A", c.dtype}, {"B", c.dtype_b}, {"Out", c.dtype_out}}) {
        text += fmt::format("    using {} = tilewise::cuda::{};\n", name, element_type(dtype));
    }
    text += shape_lines("tile", c.tile) + shape_lines("wave", c.wave) + shape_lines("warp", c.warp_tile);
    text += fmt::format("    static constexpr auto pipeline = tilewise::cuda::Pipeline::{};\n", name_of(c.pipeline));
    text += fmt::format("    static constexpr auto math = tilewise::cuda::Math::{};\n", name_of(c.math));
    text += fmt::format("    static constexpr bool a_row = {}, b_row = {}, c_row = {};\n", is_row(c.layout, 0),
                        is_row(c.layout, 1), is_row(c.layout, 2));
    text += fmt::format("    static constexpr int stages = {}, cluster_m = {}, cluster_n = {};\n", c.stages,
                        c.cluster.m, c.cluster.n);
    text += fmt::format("    static constexpr int vector_a = {}, vector_b = {}, vector_c = {};\n", c.vector_a,
                        c.vector_b, c.vector_c);
    text += fmt::format("    static constexpr bool staged_epilogue = {}, swap_ab = {};\n",
                        c.epilogue == Epilogue::cshuffle, c.swap_ab);
    if (launch.compute_registers > 0) {
        text += fmt::format("    static constexpr int copy_registers = {}, compute_registers = {};\n",
                            launch.copy_registers, launch.compute_registers);
    }
    text +=
        fmt::format("    static constexpr int threads = {}, shared_bytes = {};\n", launch.threads, launch.shared_bytes);
    return text;
}

}  // namespace

bool has_cuda_template(const KernelConfig& c) {
    if (asks_too_much(c)) return false;
    return is_warpgroup(c) ? has_warpgroup_template(c) : has_block_template(c);
}

std::string cuda_source(const KernelConfig& c, const ArchSpec& arch) {
    const std::string_view family = is_warpgroup(c) ? "wgmma" : is_plain_arithmetic(c) ? "simt" : "mma";
    const std::string_view macro = is_warpgroup(c) ? "WGMMA" : is_plain_arithmetic(c) ? "SIMT" : "MMA";
    return fmt::format(
        "// {}\n#include \"cuda/{}_gemm.hpp\"\n\nnamespace {{\nstruct Config {{\n{}}};\n}}  // namespace\n\n"
        "TILEWISE_CUDA_{}_GEMM(Config)\n{}",
        code_name(c), family, common_lines(c, launch_spec(c, arch)), macro,
        packs_operands(c, arch) ? "TILEWISE_CUDA_PACK(Config)\n" : "");
}

std::string emulated_source(const std::string& cuda_source) {
    return "#include \"emulate/primitives.hpp\"\n#include \"emulate/hopper.hpp\"\n" + cuda_source;
}

}  // namespace tilewise
