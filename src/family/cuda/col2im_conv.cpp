// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/rounding.hpp"
#include "config/conv_tiles.hpp"
#include "family/code_rules.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"
#include "kernels/common/col2im_conv_args.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace col2im_conv {
namespace {

constexpr Pipeline kPipelines[] = {Pipeline::comp_async, Pipeline::mem, Pipeline::compv3, Pipeline::compv4};
constexpr std::string_view kFixed[] = {"epilogue",      "vector_c",       "pad",       "persistent",
                                       "stream_k",      "cluster",        "swap_ab",   "cluster_k",
                                       "explicit_gemm", "producer_waves", "two_stage", "num_groups_to_merge",
                                       "split_image",   "specialization"};
constexpr ConfigRule kRules[] = {k16BitInputs, kMmaShape, kChannelsLast, kOneWaveAlongK, kNothingCompiledIn};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/col2im_conv/col2im_conv", "TILEWISE_GPU_REDUCE_COLUMNS(Config)\n"}, c, arch,
                      "    static constexpr bool leaves_sums = true;\n");
}

std::optional<LaunchPlan> plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int, Rejected*) {
    constexpr int kSumThreads = 128;
    constexpr std::int64_t kMostBlocks = 65536;  // further results are walked over
    const GemmView view = columns_view(p);
    GpuGrid grid = tile_grid(c, arch, column_conv_tiles(p, c), ceil_div(view.k, c.tile.k));
    grid.raster_group = raster_group_of(c, arch.units);
    grid.product = view;
    const Col2imConvArgs args = col2im_conv_args(kernel_conv(p));
    grid.family_args.set(args);
    const std::int64_t results = product(p.conv.in) * p.conv.n * p.conv.c;
    grid.reduce_threads = kSumThreads;
    grid.reduce_blocks = to_int(std::min(ceil_div(results / args.vector, kSumThreads), kMostBlocks));
    return grid;
}

}  // namespace
}  // namespace col2im_conv

constinit const Family kCol2imConv = {
    .id = FamilyId::col2im_conv,
    .backend = Backend::cuda,
    .description =
        "a plain product of dy by all taps on mma.sync, whose columns a second kernel adds up: few input channels",
    .ops = kDataOnly,
    .pipelines = col2im_conv::kPipelines,
    .fixed = col2im_conv::kFixed,
    .rules = col2im_conv::kRules,
    .spec = block_spec,
    .plan = col2im_conv::plan,
    .work = {col2im_conv_work<double>, col2im_conv_work<Term>, col2im_conv_work<Noted>, col2im_conv_least,
             col2im_conv_columns},
    .source = col2im_conv::source,
};

}  // namespace tilewise
