// SPDX-License-Identifier: MIT
#include "config/depthwise_spec.hpp"
#include "family/cuda/channel_slice_grid.hpp"
#include "family/cuda/channel_slice_plan.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/depthwise_rules.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace depthwise_channel_slice {
namespace {

constexpr int kCopied = 8, kLanes = 32;  // channels of a copy

bool other_filter(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool given = c.ct_filter.rank == 2 && c.ct_stride.rank == 2;
    const bool fits = given && c.ct_stride[0] == c.ct_stride[1] &&
                      (c.ct_stride[0] == 1 || (c.ct_stride[0] == 2 && c.op == Op::conv_fwd));
    return !fits && refuse(out, TILEWISE_TEXT("another stride, or no filter compiled in"),
                           TILEWISE_TEXT("2-D with stride 1, or 2 in forward"));
}

bool other_shape(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostOwnRows = 2;
    const int vector = slice_vector(c), own_rows = slice_own_rows(c);
    return !(c.tile.n == c.warp_tile.n && c.tile.n % kCopied == 0 && c.warp_tile.k == 1 &&
             c.warp_tile.m * c.warp_tile.n == vector * kLanes && kLanes % c.warp_tile.m == 0 &&
             (vector == 2 || vector == 4 || vector == 8) && c.tile.m == c.wave.m * c.warp_tile.m * own_rows &&
             own_rows <= kMostOwnRows) &&
           refuse(out, TILEWISE_TEXT("tile {}, warp tile {}", print_shape(c.tile), print_shape(c.warp_tile)),
                  TILEWISE_TEXT("2, 4 or 8 channels of a lane, and at most {} rows", kMostOwnRows));
}

bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return (c.vector_a != kCopied || c.vector_c != kCopied) &&
           refuse(out, TILEWISE_TEXT("vectors of {} and {}", c.vector_a, c.vector_c), TILEWISE_TEXT("{}", kCopied));
}

bool too_many_held(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr std::int64_t kMostHeld = 108;  // weights of a thread
    const std::int64_t held = product(c.ct_filter) * slice_vector(c);
    return held > kMostHeld &&
           refuse(out, TILEWISE_TEXT("{} weights of a thread", held), TILEWISE_TEXT("at most {}", kMostHeld));
}

constexpr Pipeline kPipelines[] = {Pipeline::basic_async_v1};
constexpr ConfigRule kRules[] = {depthwise_rules::kSplitWeights,
                                 kOneWaveAlongN,
                                 kOneWaveAlongK,
                                 {"code_filter", "filter and stride are compiled in", other_filter},
                                 kChannelsLast,
                                 depthwise_rules::kMatrixTypes,
                                 depthwise_rules::kNotDilated,
                                 {"code_shape", "lanes share out a slice of channels", other_shape},
                                 {"code_vectors", "copies have 8 channels", other_vectors},
                                 {"code_taps", "a thread has registers for its weights", too_many_held}};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/depthwise_channel_slice/depthwise_channel_slice",
                       c.op == Op::conv_bwd_weight ? depthwise_rules::kSecondKernel : ""},
                      c, arch, depthwise_rules::depthwise_lines(c, arch));
}

}  // namespace
}  // namespace depthwise_channel_slice

constinit const Family kDepthwiseChannelSlice = {
    .id = FamilyId::depthwise_channel_slice,
    .backend = Backend::cuda,
    .description = "asynchronous copies stage slices of channels, and threads compute from them in plain arithmetic",
    .ops = kDataConvs,
    .pipelines = depthwise_channel_slice::kPipelines,
    .fixed = depthwise_rules::kSliceFixed,
    .rules = depthwise_channel_slice::kRules,
    .spec = block_spec,
    .plan = channel_slice_grid,
    .searches = true,
    .work = {depthwise_slice_work<double>, depthwise_slice_work<Term>, depthwise_slice_work<Noted>},
    .source = depthwise_channel_slice::source,
};

}  // namespace tilewise
