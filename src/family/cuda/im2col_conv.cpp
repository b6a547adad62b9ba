// SPDX-License-Identifier: MIT
#include <algorithm>

#include "config/im2col.hpp"
#include "family/code_rules.hpp"
#include "family/cuda/im2col_grid.hpp"
#include "family/cuda/warpgroup_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace im2col_conv {
namespace {

using warpgroup_rules::kLineBytes;
constexpr int kWarpgroupRows = 64;

// The main loop is that of the warpgroup GEMM, on other operands; those of 8 bits and tf32 must lie along the reduction, as forward's do.
bool along_reduction(const KernelConfig& c) { return c.op == Op::conv_fwd; }

bool other_types(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool turns = bytes_of(c.dtype) == 2, is_cut = c.dtype == DType::fp32 && c.math == Math::tf32;
    return !(turns || (along_reduction(c) && (bytes_of(c.dtype) == 1 || is_cut))) &&
           refuse(out, TILEWISE_TEXT("{}, math {}", name_of(c.dtype), name_of(c.math)),
                  TILEWISE_TEXT("16 bits, or in forward 8 or fp32 as tf32"));
}

bool no_warpgroups(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return (c.warp_tile.m != kWarpgroupRows || c.warp_tile.n != c.tile.n) &&
           refuse(out, TILEWISE_TEXT("warp tile {} of tile {}", print_shape(c.warp_tile), print_shape(c.tile)),
                  TILEWISE_TEXT("{} rows and all columns of the tile", kWarpgroupRows));
}

// Lines may be half as long where operands are gathered along them. A stage may have several taps along w.
bool other_depth(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const std::int64_t bytes = bytes_of(c.dtype), stage = c.tile.k * bytes;
    const int taps = joined_taps(c);
    const bool even = stage == taps * depth_bytes(c);
    const bool weight = c.op != Op::conv_bwd_weight || (taps == 1 && depth_bytes(c) == kLineBytes);
    const bool lines = (walks_taps(c) && bytes == 2) || stage == kLineBytes;
    return !(even && weight && lines) &&
           refuse(out, TILEWISE_TEXT("a tile of depth {}", c.tile.k),
                  TILEWISE_TEXT("a line of {} bytes, or whole taps of 16-bit elements", kLineBytes));
}

bool partial_lines(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const std::int64_t line = walks_taps(c) ? column_line_bytes(c) : kLineBytes;
    return !along_reduction(c) && c.tile.n * bytes_of(c.dtype) % line != 0 &&
           refuse(out, TILEWISE_TEXT("{} columns", c.tile.n), TILEWISE_TEXT("whole lines of {} bytes", line));
}

bool shared_walks(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const int sharers = c.op == Op::conv_bwd_weight ? c.cluster.m : c.cluster.n;
    return walks_taps(c) && sharers != 1 &&
           refuse(out, TILEWISE_TEXT("{} blocks of a cluster that share walks over taps", sharers), TILEWISE_TEXT("1"));
}

bool other_specialization(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.specialization != Specialization::none && walks_taps(c) &&
           refuse(out, TILEWISE_TEXT("specialization {}", name_of(c.specialization)), TILEWISE_TEXT("none or 1x1s1"));
}
void correct_specialization(KernelConfig& c, const ArchSpec&) { c.specialization = Specialization::none; }

// Blocks that share tiles share out steps of which every tile has as many.
bool uneven_steps(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.stream_k != StreamK::off &&
           !(c.op != Op::conv_bwd_data && c.cluster == Shape2{} && c.pipeline == Pipeline::compv6) &&
           refuse(out, TILEWISE_TEXT("stream_k {}", name_of(c.stream_k)),
                  TILEWISE_TEXT("off, or compv6 without a cluster and not in backward data"));
}
void correct_stream_k(KernelConfig& c, const ArchSpec&) { c.stream_k = StreamK::off; }

// Blocks that add up in a cluster put their sums in the place of the stages; rows of these are a little longer.
bool sums_do_not_fit(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (!c.cluster_k) return false;
    constexpr std::int64_t kLongerRows = 8, kSumBytes = 4;
    const bool fits =
        (c.tile.n + kLongerRows) * c.tile.m * kSumBytes <= std::int64_t{c.stages} * (c.tile.m + c.tile.n) * kLineBytes;
    return !(fits && joined_taps(c) == 1 && depth_bytes(c) == kLineBytes && c.pipeline == Pipeline::compv6) &&
           refuse(out, TILEWISE_TEXT("cluster_k with {} stages of tile {}", c.stages, print_shape(c.tile)),
                  TILEWISE_TEXT("room for the sums, whole lines, and compv6"));
}

constexpr Pipeline kPipelines[] = {Pipeline::compv6, Pipeline::compv5};
constexpr std::string_view kFixed[] = {"swap_ab",   "explicit_gemm",       "split_image",
                                       "two_stage", "num_groups_to_merge", "blocks_per_unit"};
constexpr ConfigRule kRules[] = {
    {"code_warp_tile", "one warpgroup instruction has all columns of the tile", no_warpgroups},
    kChannelsLast,
    kStagedResults,
    kWholeVectors,
    {"code_types", "matrix units turn 16-bit elements round, no others, and take fp32 as tf32", other_types},
    {"code_depth", "a stage is whole lines, of one tap or of several", other_depth},
    {"code_lines", "columns come in whole lines", partial_lines},
    warpgroup_rules::kBoxes,
    {"code_shared_walks", "walks over taps are copied for one block alone", shared_walks},
    {"code_specialization", "copies walk over all taps, or there is one", other_specialization, correct_specialization},
    kNothingCompiledIn,
    {"code_stream_k", "blocks share out steps of which every tile has as many", uneven_steps, correct_stream_k},
    {"code_cluster_sums", "the sums of a cluster take the place of the stages", sums_do_not_fit},
    kOneProducerWave,
    warpgroup_rules::kWarpgroups,
    kOneWaveAlongN,
    kOneWaveAlongK,
};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/im2col_conv/im2col_conv", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace im2col_conv

constinit const Family kIm2colConv = {
    .id = FamilyId::im2col_conv,
    .backend = Backend::cuda,
    .description = "the copy engine walks over the taps for warpgroup products: dense layers",
    .ops = kEveryConv,
    .pipelines = im2col_conv::kPipelines,
    .fixed = im2col_conv::kFixed,
    .rules = im2col_conv::kRules,
    .spec = block_spec,
    .plan = im2col_grid,
    .work = {im2col_conv_work<double>, im2col_conv_work<Term>, im2col_conv_work<Noted>,
             least_of_any_plan<im2col_conv_work<Least>>},
    .source = im2col_conv::source,
};

}  // namespace tilewise
