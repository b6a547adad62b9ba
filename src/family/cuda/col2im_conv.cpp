// SPDX-License-Identifier: MIT
#include "family/code_rules.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/conv_grid.hpp"
#include "family/cuda/cuda_source.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"

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
    return cuda_source({"cuda/col2im_conv/col2im_conv", "TILEWISE_GPU_REDUCE_COLUMNS(Config)\n"}, c, arch,
                       "    static constexpr bool leaves_sums = true;\n");
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
    .plan = col2im_grid,
    .work = {col2im_conv_work<double>, col2im_conv_work<Term>, col2im_conv_work<Noted>, col2im_conv_least,
             col2im_conv_columns},
    .source = col2im_conv::source,
};

}  // namespace tilewise
