// SPDX-License-Identifier: MIT
#include "config/depthwise_spec.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/conv_grid.hpp"
#include "family/gpu/depthwise_rules.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace depthwise_block_diagonal {
namespace {

constexpr int kOwn = 16;  // a warp has some of so many channels

bool weighs(const KernelConfig& c) { return c.op == Op::conv_bwd_weight; }

bool other_filter(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr std::int64_t kMostColumns = 5, kMostStride = 2;
    const std::int64_t stride = extent_from_last(c.ct_stride, 0);
    const bool fits = c.ct_filter.rank >= 2 && c.ct_stride.rank == c.ct_filter.rank &&
                      stride == extent_from_last(c.ct_stride, 1) && stride <= kMostStride &&
                      extent_from_last(c.ct_stride, 2) == 1 && (stride == 1 || c.op != Op::conv_bwd_data) &&
                      extent_from_last(c.ct_filter, 0) <= kMostColumns;
    return !fits && refuse(out, TILEWISE_TEXT("another filter or stride, or none compiled in"),
                           TILEWISE_TEXT("2-D or 3-D, at most {} wide, with stride 1, or {} but not in backward data",
                                         kMostColumns, kMostStride));
}

bool other_shape(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr Shape3 kWarp = {16, 8, 16};
    return !(c.warp_tile == kWarp && c.tile.k == kWarp.k && c.wave.k == 1 && c.tile.n % (c.wave.n * kOwn) == 0 &&
             c.tile.m % (c.wave.m * c.warp_tile.m) == 0) &&
           refuse(out,
                  TILEWISE_TEXT("tile {}, wave {}, warp tile {}", print_shape(c.tile), print_shape(c.wave),
                                print_shape(c.warp_tile)),
                  TILEWISE_TEXT("{} channels for each wave along n", kOwn));
}

// Registers that hold what every tap needs, of all the warp's channels.
bool too_many_held(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr std::int64_t kMostHeld = 108;
    const std::int64_t groups = c.tile.n / c.wave.n / 8;
    const std::int64_t width = extent_from_last(c.ct_filter, 0), height = extent_from_last(c.ct_filter, 1);
    const std::int64_t pairs = (width + 1) / 2 * height;
    const std::int64_t held = groups * (weighs(c) ? pairs * 4 : width * height * extent_from_last(c.ct_filter, 2));
    return held > kMostHeld &&
           refuse(out, TILEWISE_TEXT("{} registers for taps", held), TILEWISE_TEXT("at most {}", kMostHeld));
}

constexpr ConfigRule kRules[] = {depthwise_rules::kSplitWeights,
                                 {"code_filter", "taps are diagonals of matrices that registers hold", other_filter},
                                 kChannelsLast,
                                 depthwise_rules::kMatrixTypes,
                                 depthwise_rules::kMatrixVectors,
                                 {"code_shape", "warps have channels of their own", other_shape},
                                 depthwise_rules::kNotDilated,
                                 {"code_taps", "registers hold what every tap needs", too_many_held}};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/depthwise_block_diagonal/depthwise_block_diagonal",
                       c.op == Op::conv_bwd_weight ? depthwise_rules::kSecondKernel : ""},
                      c, arch, depthwise_rules::depthwise_lines(c, arch));
}

}  // namespace
}  // namespace depthwise_block_diagonal

constinit const Family kDepthwiseBlockDiagonal = {
    .id = FamilyId::depthwise_block_diagonal,
    .backend = Backend::cuda,
    .description = "matrix units multiply pixels by a diagonal matrix of the channels for each tap",
    .ops = kEveryConv,
    .pipelines = depthwise_rules::kBasic,
    .fixed = depthwise_rules::kMatrixFixed,
    .rules = depthwise_block_diagonal::kRules,
    .spec = block_spec,
    .plan = depthwise_grid,
    .work = {depthwise_matrix_work<double>, depthwise_matrix_work<Term>, depthwise_matrix_work<Noted>},
    .source = depthwise_block_diagonal::source,
};

}  // namespace tilewise
