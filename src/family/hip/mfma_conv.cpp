// SPDX-License-Identifier: MIT
// Plans are those of every convolution that gathers on a GPU (family/gpu/conv_grid.hpp); blocks, loops and arithmetic those of GEMM on MFMA.
#include <algorithm>
#include <cstdint>

#include "base/bounded_product.hpp"
#include "config/conv_tiles.hpp"
#include "config/geometry.hpp"
#include "family/code_rules.hpp"
#include "family/families.hpp"
#include "family/gpu/conv_grid.hpp"
#include "family/gpu/gather_conv.hpp"
#include "family/gpu/gpu_source.hpp"
#include "family/hip/mfma_conv_work.hpp"
#include "family/hip/mfma_rules.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace mfma_conv {
namespace {

constexpr Pipeline kPipelines[] = {Pipeline::basic_v1,   Pipeline::mem,           Pipeline::compv3,
                                   Pipeline::compv4,     Pipeline::compv5,        Pipeline::compv6,
                                   Pipeline::comp_async, Pipeline::basic_async_v1};
constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "swap_ab",        "cluster_k",
                                       "math",    "gather",         "blocks_per_unit"};

// Columns of backward weight that are counted in whole chunks of channels leave one by one (ChunkColumns, kernels/gpu/gather_conv.hpp).
bool runs_of_chunks(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.op == Op::conv_bwd_weight && counts_whole_chunks(c) && c.vector_c > 1 &&
           refuse(out, TILEWISE_TEXT("vectors of {} results of channels that begin anywhere", c.vector_c),
                  TILEWISE_TEXT("1, or a vector of the input"));
}

// Merged groups share neither tiles by steps nor chunks that are filled up (kernels/hip/mfma_conv/merged_weights.hpp).
bool merges_otherwise(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.num_groups_to_merge > 1 && (c.stream_k != StreamK::off || counts_whole_chunks(c)) &&
           refuse(out,
                  TILEWISE_TEXT("{} merged groups with stream_k {} and vectors of {} and {}", c.num_groups_to_merge,
                                name_of(c.stream_k), c.vector_a, c.vector_b),
                  TILEWISE_TEXT("no stream_k, and vectors of 4 bytes or more"));
}

// Threads keep their place along a line of single elements that are looked up along k.
bool long_lines(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const int vector = std::min(c.vector_a, c.vector_b);
    const std::int64_t accesses = c.tile.k / vector, threads = threads_per_block(c, arch);
    return vector == 1 && accesses > threads &&
           refuse(out, TILEWISE_TEXT("{} elements along k for {} threads", accesses, threads),
                  TILEWISE_TEXT("no more than threads"));
}

constexpr ConfigRule kRules[] = {
    {"code_warp_tile", "one matrix instruction has this shape", mfma_gemm::other_square},
    kOneWaveAlongK,
    {"code_waves", "a wave has whole squares of sums", mfma_gemm::uneven_waves},
    {"code_depth", "a lane has 16 bytes along k", mfma_gemm::other_depth},
    {"code_buffers", "a pipeline has as many buffers as it fills", mfma_gemm::other_buffers},
    {"code_registers", "sums are not moved about in the loop", mfma_gemm::crowded},
    {"code_turns", "half of the waves multiply while the others fetch", mfma_gemm::odd_groups},
    {"code_results", "vectors of results stay within a wave's columns", mfma_gemm::crosses_runs},
    {"code_columns", "columns that are filled up leave one by one", runs_of_chunks,
     [](KernelConfig& c, const ArchSpec&) { c.vector_c = 1; }},
    {"code_lines", "a thread keeps its place within lines", long_lines},
    {"code_merged", "merged groups are one plain product", merges_otherwise},
    gather_conv::kWholeSteps,
    gather_conv::kVectorsAlongChannels,
};

// Lanes have offsets of 31 bits (kernels/hip/bounded_source.hpp): from the image of a tile's first pixel to the last one's and as far as
// the filter reaches beyond it, or from a line of a matrix to the tile's last. Kernels of split_image look up with 64 bits.
bool beyond_offsets(const Problem& p, const KernelConfig& c, Rejected* why) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    const ConvShape& s = p.conv;
    const bool weight = c.op == Op::conv_bwd_weight, data = c.op == Op::conv_bwd_data;
    const std::int64_t size = bytes_of(weight ? c.dtype_b : c.dtype);
    const Extents in = data ? output_size(s) : s.in, positions = data ? s.in : output_size(s);
    const std::int64_t channels = data ? s.k : s.c;
    std::int64_t fewest = 1, reach = 0, pixels = is_channels_last(c.layout) ? channels : 1;
    for (int d = in.rank - 1; d >= 0; --d) {
        fewest *= std::max<std::int64_t>(1, data ? positions[d] / s.stride[d] : positions[d]);
        const std::int64_t window = bounded_product({s.filter[d], s.dilation[d]}) + s.pad_before[d];
        reach = std::min(kMost, reach + bounded_product({window, pixels, size}));
        pixels = bounded_product({pixels, in[d]});
    }
    const std::int64_t rows = weight ? c.tile.k : c.tile.m, image = bounded_product({product(in), channels, size});
    const std::int64_t images = std::min(s.n, (rows - 1) / fewest + 2);
    const std::int64_t farthest = bounded_product({images, image});
    if (!c.split_image && (farthest >= kMost || farthest + reach >= kMost)) {
        return refuse(why, TILEWISE_TEXT("{} images of {} bytes in a tile", images, image),
                      TILEWISE_TEXT("less than {} bytes with what the filter reaches, or split_image", kMost));
    }
    // Channels first, dy of backward weight is looked up from the same image on; its channels lie a plane apart.
    const std::int64_t planes = weight && !is_channels_last(c.layout)
                                    ? bounded_product({images, product(output_size(s)), s.k, bytes_of(c.dtype)})
                                    : 0;
    if (!c.split_image && planes >= kMost) {
        return refuse(why, TILEWISE_TEXT("{} images of dy of {} bytes in a tile", images, planes / images),
                      TILEWISE_TEXT("less than {} bytes, or split_image", kMost));
    }
    const std::int64_t filter = product(s.filter) * (s.c / s.g) * bytes_of(c.dtype_b);
    const bool all = data || c.num_groups_to_merge > 1;  // of a group or of those that are merged, whatever the tile
    const std::int64_t filters = all ? s.k / s.g * std::max(1, c.num_groups_to_merge) : c.tile.n;
    const bool wide = data && c.split_image;
    const std::int64_t line = weight ? s.k * bytes_of(c.dtype) : filter, lines = weight ? c.tile.k : filters;
    return !wide && bounded_product({line, lines + 1}) >= kMost &&
           refuse(why, TILEWISE_TEXT("{} lines of {} bytes in a tile", lines, line),
                  TILEWISE_TEXT("less than {} bytes", kMost));
}
std::optional<LaunchPlan> plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int threads,
                               Rejected* why) {
    if (beyond_offsets(p, c, why)) return std::nullopt;
    return mfma_gemm::within_grid(gather_grid(p, c, arch, threads, why), why);
}

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"hip/mfma_conv/mfma_conv", kReduceLine}, c, arch, mfma_gemm::loop_lines(c, arch));
}

}  // namespace
}  // namespace mfma_conv

constinit const Family kMfmaConv = {
    .id = FamilyId::mfma_conv,
    .backend = Backend::hip,
    .description = "an implicit product on MFMA whose threads gather the activation: any problem",
    .ops = kEveryConv,
    .pipelines = mfma_conv::kPipelines,
    .has_interwave = true,
    .fixed = mfma_conv::kFixed,
    .rules = mfma_conv::kRules,
    .spec = mfma_gemm::spec,
    .plan = mfma_conv::plan,
    .searches = true,
    .work = {mfma_conv_work<double>, mfma_conv_work<Term>, mfma_conv_work<Noted>,
             least_of_any_plan<mfma_conv_work<double>>},
    .source = mfma_conv::source,
};

}  // namespace tilewise
