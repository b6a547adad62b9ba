// SPDX-License-Identifier: MIT
#include <algorithm>

#include "family/code_rules.hpp"
#include "family/cuda/resident_filter_grid.hpp"
#include "family/cuda/resident_filter_plan.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace resident_filter_conv {
namespace {

constexpr int kRows = 64;  // of a warpgroup product

bool all(const Extents& extents, std::int64_t least, std::int64_t most) {
    return extents.rank == 2 && std::min(extents[0], extents[1]) >= least && std::max(extents[0], extents[1]) <= most;
}

bool other_filter(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostStride = 2;
    return !(all(c.ct_filter, kResidentFilterTaps, kResidentFilterTaps) && all(c.ct_stride, 1, kMostStride) &&
             c.ct_dilation.rank == 0 && c.ndim == 2) &&
           refuse(out, TILEWISE_TEXT("another filter, stride or dilation, or none compiled in"),
                  TILEWISE_TEXT("{0}x{0} in 2-D with strides of at most {1}", kResidentFilterTaps, kMostStride));
}

bool too_many_sums(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostWaves = 4, kMostSums = 128;
    const std::int64_t classes = c.op == Op::conv_bwd_data ? product(c.ct_stride) : 1;
    return !(c.tile.m % (kRows * c.wave.m) == 0 && c.wave.m <= kMostWaves &&
             c.tile.m / (kRows * c.wave.m) * classes * c.tile.n / 2 <= kMostSums) &&
           refuse(out, TILEWISE_TEXT("tile {} of {} waves", print_shape(c.tile), c.wave.m),
                  TILEWISE_TEXT("{} rows for each of at most {} waves, and {} sums of a thread", kRows, kMostWaves,
                                kMostSums));
}

bool other_lines(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kLine = 64;
    return (c.tile.k != kLine || c.warp_tile.n != c.tile.n) &&
           refuse(out, TILEWISE_TEXT("tile {} with warp tile {}", print_shape(c.tile), print_shape(c.warp_tile)),
                  TILEWISE_TEXT("a depth of {} and all columns", kLine));
}

bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kVector = 8;
    return !(c.vector_a == kVector && c.vector_b == kVector && c.vector_c == kVector) &&
           refuse(out, TILEWISE_TEXT("vectors of {}, {} and {}", c.vector_a, c.vector_b, c.vector_c),
                  TILEWISE_TEXT("{}", kVector));
}

bool other_cluster(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostSharers = 4;
    return (c.cluster.m != 1 || c.cluster.n > kMostSharers) &&
           refuse(out, TILEWISE_TEXT("cluster {}x{}", c.cluster.m, c.cluster.n),
                  TILEWISE_TEXT("1x1 to 1x{}", kMostSharers));
}

constexpr Pipeline kPipelines[] = {Pipeline::compv6};
constexpr std::string_view kFixed[] = {"split_k",     "blocks_per_unit", "swap_ab",    "cluster_k",      "two_stage",
                                       "split_image", "explicit_gemm",   "persistent", "specialization", "stream_k"};
constexpr ConfigRule kRules[] = {
    {"code_filter", "3x3 filters stay in shared memory; strides are compiled in", other_filter},
    k16BitTypes,
    kChannelsLast,
    {"code_vectors", "operands and results move by 16 bytes", other_vectors},
    kStagedResults,
    {"code_sums", "results of all taps stay in registers", too_many_sums},
    {"code_lines", "a stage is a line of 128 bytes", other_lines},
    kOneWaveAlongN,
    kOneWaveAlongK,
    kOneProducerWave,
    {"code_cluster", "blocks along n share pixels", other_cluster}};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/resident_filter_conv/resident_filter_conv"}, c, arch);
}

}  // namespace
}  // namespace resident_filter_conv

constinit const Family kResidentFilterConv = {
    .id = FamilyId::resident_filter_conv,
    .backend = Backend::cuda,
    .description = "the filter stays in shared memory while runs of positions pass by, for warpgroup products",
    .ops = kDataConvs,
    .pipelines = resident_filter_conv::kPipelines,
    .fixed = resident_filter_conv::kFixed,
    .rules = resident_filter_conv::kRules,
    .spec = block_spec,
    .plan = resident_filter_grid,
    .searches = true,
    .work = {resident_filter_work<double>, resident_filter_work<Term>, resident_filter_work<Noted>},
    .source = resident_filter_conv::source,
};

}  // namespace tilewise
