// SPDX-License-Identifier: MIT
#include "codegen/cuda_source.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cctype>

#include "codegen/cuda_conv_source.hpp"
#include "codegen/launch_spec.hpp"
#include "codegen/source_text.hpp"
#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "config/workspace.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr int kWarpgroupRows = 64;  // warp tiles of so many rows are computed by warpgroup instructions
constexpr int kLineBytes = 128;     // which tensor copies fill whole

bool is_warpgroup(const KernelConfig& c) { return c.warp_tile.m == kWarpgroupRows; }

// Configs are asked about before they are known to be valid, so what follows could divide by zero or overflow.
bool is_sane(const KernelConfig& c) {
    constexpr int kMost = 4096;  // more than any template has, also products of the waves
    const auto list = {c.tile.m,
                       c.tile.n,
                       c.tile.k,
                       c.wave.m,
                       c.wave.n,
                       c.wave.k,
                       c.warp_tile.m,
                       c.warp_tile.n,
                       c.warp_tile.k,
                       c.vector_a,
                       c.vector_b,
                       c.vector_c,
                       c.cluster.m,
                       c.cluster.n,
                       c.stages,
                       c.split_k,
                       c.num_groups_to_merge,
                       c.blocks_per_unit};
    return std::min(list) >= 1 && std::max(list) <= kMost && wave_count(c) <= kMost;
}

// What no CUDA template does.
bool asks_too_much(const KernelConfig& c) {
    const bool varies = !c.deterministic && c.stream_k != StreamK::atomic;
    const bool gemm_only =
        (c.stream_k != StreamK::off && c.gather == Gather::halo) || c.pipeline == Pipeline::preshuffle;
    const bool shares_unit = c.blocks_per_unit != 1 && is_conv(c.op) && c.gather != Gather::halo &&
                             c.specialization != Specialization::depthwise;
    return c.layout == Layout::any || shares_unit || varies || (is_conv(c.op) && gemm_only);
}

bool is_plain_arithmetic(const KernelConfig& c) { return c.dtype == DType::fp32 && c.warp_tile.k == 1; }

// Waves that share out k take eights of it each, and leave their sums where the operands were. Warp tiles of 16 rows read
// operands along k only.
bool shares_out_k(const KernelConfig& c) {
    constexpr int kEight = 8, kSumBytes = 4;
    const int eights = c.tile.k / (kEight * c.wave.k);
    const std::int64_t sums = std::int64_t{c.wave.k - 1} * c.tile.m * c.tile.n * kSumBytes;
    const std::int64_t buffers =
        std::int64_t{c.stages} * (c.tile.m + c.tile.n) * c.tile.k * static_cast<std::int64_t>(bytes_of(c.dtype));
    return is_plain_arithmetic(c) && c.stream_k == StreamK::off && c.tile.k == eights * kEight * c.wave.k &&
           std::has_single_bit(static_cast<unsigned>(eights)) && sums <= buffers;
}
bool has_small_warps(const KernelConfig& c) { return is_plain_arithmetic(c) && c.warp_tile == Shape3{16, 16, 1}; }

// fp64 matrix units read fp32 along k, from tiles of whole lines of shared memory.
bool has_double_template(const KernelConfig& c) {
    constexpr int kLineFloats = 32;
    return c.wave.k == 1 && c.tile.k % kLineFloats == 0 && c.stream_k == StreamK::off &&
           c.pipeline == Pipeline::comp_async;
}

// mma.sync, plain fp32 and fp32 in fp64: blocks whose threads all load and compute.
bool has_block_template(const KernelConfig& c) {
    const bool along_k = is_row(c.layout, 0) && !is_row(c.layout, 1);
    if ((has_small_warps(c) || multiplies_doubles(c)) && !along_k) return false;
    if (multiplies_doubles(c) && !has_double_template(c)) return false;
    const bool has_loop = c.pipeline != Pipeline::compv5 && c.pipeline != Pipeline::compv6;
    return has_loop && c.scheduler == Scheduler::intrawave && c.cluster == Shape2{} &&
           (c.wave.k == 1 || shares_out_k(c)) && c.producer_waves == 0 && !c.swap_ab && !c.cluster_k &&
           drains_whole_vectors(c);
}

// Of a large operand that lies along its lines: half a warp reads neighbouring lines of a few k.
bool multiplies_vector_rows(const KernelConfig& c) {
    return c.swap_ab ? is_row(c.layout, 0) && is_row(c.layout, 1) : !is_row(c.layout, 0) && !is_row(c.layout, 1);
}
bool has_vector_rows_template(const KernelConfig& c) {
    constexpr int kHalfWarp = 16, kMostRows = 8;
    const int wide = static_cast<int>(kPackedBytes / bytes_of(c.dtype));
    const Shape3 tile{kHalfWarp * wide, c.warp_tile.n, c.wave.k * 2 * std::min(wide, kMostRows)};
    return multiplies_vector_rows(c) && c.tile == tile && c.wave.m == 1 && !c.persistent &&
           (c.split_k == 1 || c.cluster_k);
}

// One pass over the large operand, by accesses of 16 bytes; a block's warps share out lines and k. Vectors lie along k.
bool has_vector_template(const KernelConfig& c) {
    constexpr int kLaneBytes = 128;  // of a line that the lanes of a warp read together
    const bool wide = c.vector_a * bytes_of(c.dtype) == kPackedBytes && c.vector_b * bytes_of(c.dtype) == kPackedBytes;
    const Shape3 tile{c.wave.m * c.warp_tile.m, c.warp_tile.n,
                      static_cast<int>(c.wave.k * kLaneBytes / bytes_of(c.dtype))};
    const bool along_k = is_row(c.layout, 0) && !is_row(c.layout, 1);
    const bool lines = along_k && c.tile == tile && c.persistent && c.split_k == 1 && !c.cluster_k;
    return c.pipeline == Pipeline::compv3 && c.scheduler == Scheduler::intrawave &&
           bytes_of(c.dtype) == bytes_of(c.dtype_b) && c.math == Math::strict && wide && c.wave.n == 1 &&
           c.stream_k == StreamK::off && c.cluster == Shape2{} && c.producer_waves == 0 &&
           (lines || has_vector_rows_template(c));
}

// What blocks add up in a cluster takes the place of the stages; rows of sums are a little longer than the tile's.
bool sums_fit_stages(const KernelConfig& c) {
    constexpr std::int64_t kLongerRows = 8, kSumBytes = 4;
    const std::int64_t sums = std::max((c.tile.m + kLongerRows) * c.tile.n, (c.tile.n + kLongerRows) * c.tile.m);
    return sums * kSumBytes <= std::int64_t{c.stages} * (c.tile.m + c.tile.n) * kLineBytes;
}

bool has_warpgroup_template(const KernelConfig& c) {
    const bool producers = c.pipeline == Pipeline::compv5 || c.pipeline == Pipeline::compv6;
    const bool pipelined = producers || c.pipeline == Pipeline::comp_async || c.pipeline == Pipeline::mem ||
                           c.pipeline == Pipeline::basic_async_v1 || c.pipeline == Pipeline::preshuffle;
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
    // Blocks that share tiles, or read a packed B, work alone and from whole operands.
    const bool alone = c.stream_k != StreamK::off || c.pipeline == Pipeline::preshuffle;
    const bool whole = c.vector_a > 1 && c.vector_b > 1 && c.cluster == Shape2{} && c.pipeline != Pipeline::compv5;
    // Blocks that add up in a cluster have no workspace, so neither have they packed operands.
    const bool unpacked = c.vector_a * bytes == kPackedBytes && c.vector_b * bytes == kPackedBytes;
    // Two blocks that share a unit leave so many sums to each thread that computes.
    const int most_sums = c.wave.m == 1 ? 128 : 64;
    const bool has_registers =
        c.blocks_per_unit == 1 || !producers ||
        (c.blocks_per_unit == 2 && c.tile.m * c.tile.n <= most_sums * 128 * c.wave.m && c.math != Math::tf32x3 &&
         c.pipeline == Pipeline::compv6 && c.cluster == Shape2{} && c.stream_k == StreamK::off && !c.persistent);
    const bool adds_up = !c.cluster_k || (unpacked && !alone && c.pipeline != Pipeline::compv5 && sums_fit_stages(c));
    // Three products of halves need halves, which waves that only load put into shared memory.
    return (c.math != Math::tf32x3 || producers) && pipelined && copies && c.wave.m <= most_warpgroups(c) &&
           c.producer_waves == (producers ? 1 : 0) && c.scheduler == Scheduler::intrawave && c.wave.n == 1 &&
           c.wave.k == 1 && c.warp_tile.n == c.tile.n && is_row(c.layout, 2) && whole_lines && adds_up &&
           has_registers && (!c.swap_ab || c.cluster == Shape2{}) && c.epilogue == Epilogue::cshuffle &&
           (c.pipeline != Pipeline::compv5 || c.wave.m == 2) && (!alone || whole);
}

// Whether the neighbours in memory of the operand are neighbours along the axis.
bool is_along(const KernelConfig& c, int operand, Axis axis) { return contiguous_axis(c, operand) == axis; }

std::string common_lines(const KernelConfig& c, const LaunchSpec& launch) {
    std::string text;
    for (const auto& [name, dtype] : {std::pair{"A", c.dtype}, {"B", c.dtype_b}, {"Out", c.dtype_out}}) {
        text += fmt::format("    using {} = tilewise::cuda::{};\n", name, element_type(dtype));
    }
    text += shape_lines("tile", c.tile) + shape_lines("wave", c.wave) + shape_lines("warp", c.warp_tile);
    text += fmt::format("    static constexpr auto pipeline = tilewise::cuda::Pipeline::{};\n", name_of(c.pipeline));
    text += fmt::format("    static constexpr auto math = tilewise::cuda::Math::{};\n", name_of(c.math));
    text += fmt::format("    static constexpr bool a_row = {}, b_row = {}, c_row = {};\n", is_along(c, 0, Axis::k),
                        is_along(c, 1, Axis::n), is_along(c, 2, Axis::n));
    text += fmt::format("    static constexpr auto stream_k = tilewise::cuda::StreamK::{};\n", name_of(c.stream_k));
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

}  // namespace

bool has_cuda_template(const KernelConfig& c) {
    if (!is_sane(c) || asks_too_much(c)) return false;
    if (is_conv(c.op)) return has_cuda_conv_template(c);
    if (multiplies_vectors(c)) return has_vector_template(c);
    return is_warpgroup(c) ? has_warpgroup_template(c) : has_block_template(c);
}

namespace {

// The header in kernels/cuda, without its extension.
std::string template_of(const KernelConfig& c) {
    if (is_conv(c.op)) return cuda_conv_template(c);
    if (multiplies_vectors(c)) return multiplies_vector_rows(c) ? "vector_rows_gemm" : "vector_gemm";
    if (multiplies_doubles(c)) return "double_gemm";
    return is_warpgroup(c) ? "wgmma_gemm" : is_plain_arithmetic(c) ? "simt_gemm" : "mma_gemm";
}

// The second kernel of those whose sums meet in the workspace when a launch splits them, which takes a tenth of the compiler's
// time. Kernels that stage patches bring their own.
std::string_view reduction_of(const KernelConfig& c) {
    KernelConfig split = c;
    if (c.stream_k == StreamK::off) split.split_k = 2;
    if (multiplies_vectors(c) || !sums_in_workspace(split)) return "";
    if (is_conv(c.op) && conv_family(c) == ConvFamily::halo) return "";
    if (is_conv(c.op) && conv_family(c) == ConvFamily::depthwise) {
        return c.op == Op::conv_bwd_weight ? "TILEWISE_CUDA_REDUCE_DEPTHWISE(Config)\n" : "";
    }
    return "TILEWISE_CUDA_REDUCE(Config)\n";
}

std::string upper_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

}  // namespace

std::string cuda_source(const KernelConfig& c, const ArchSpec& arch) {
    const std::string name = template_of(c);
    const std::string lines = common_lines(c, launch_spec(c, arch)) + (is_conv(c.op) ? cuda_conv_lines(c) : "");
    return fmt::format(
        "// {}\n#define TILEWISE_WGMMA_COLUMNS {}\n#include \"cuda/{}.hpp\"\n\nnamespace {{\nstruct Config "
        "{{\n{}}};\n}}  // namespace\n\n"
        "TILEWISE_CUDA_{}(Config)\n{}{}{}",
        code_name(c), is_warpgroup(c) ? c.warp_tile.n : 0, name, lines, upper_case(name), reduction_of(c),
        packs_operands(c, arch) ? "TILEWISE_CUDA_PACK(Config)\n" : "",
        c.pipeline == Pipeline::preshuffle ? "TILEWISE_CUDA_PACK_B(Config)\n" : "");
}

std::string emulated_source(const std::string& cuda_source) {
    return "#include \"emulate/primitives.hpp\"\n#include \"emulate/hopper.hpp\"\n" + cuda_source;
}

}  // namespace tilewise
