// SPDX-License-Identifier: MIT
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/conv_grid.hpp"
#include "family/gpu/gather_conv.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace mma_conv {
namespace {

bool warpgroups(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kWarpgroupRows = 64;
    return c.warp_tile.m == kWarpgroupRows && refuse(out, TILEWISE_TEXT("warp tile {}", print_shape(c.warp_tile)),
                                                     TILEWISE_TEXT("that of mma.sync, or gather tensor"));
}

constexpr ConfigRule kRules[] = {gather_conv::kGathersAsThePipeline,
                                 {"code_warp_tile", "gathered operands go to mma.sync", warpgroups},
                                 kOneWaveAlongK,
                                 gather_conv::kWholeSteps,
                                 gather_conv::kOneProduct,
                                 gather_conv::kVectorsAlongChannels,
                                 kDrainsVectors};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/mma_conv/mma_conv", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace mma_conv

constinit const Family kMmaConv = {
    .id = FamilyId::mma_conv,
    .backend = Backend::cuda,
    .description = "an implicit product on mma.sync whose threads gather the activation: any problem",
    .ops = kEveryConv,
    .pipelines = gather_conv::kPipelines,
    .fixed = gather_conv::kFixed,
    .rules = mma_conv::kRules,
    .spec = block_spec,
    .plan = gather_grid,
    .work = {gather_conv_work<double>, gather_conv_work<Term>, gather_conv_work<Noted>, gather_conv_least,
             block_gemm_columns},
    .source = mma_conv::source,
};

}  // namespace tilewise
