// SPDX-License-Identifier: MIT
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/conv_grid.hpp"
#include "family/gpu/gather_conv.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace simt_conv {
namespace {

bool small_warps(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kLeastRows = 32, kWarpgroupRows = 64;
    return (c.warp_tile.m < kLeastRows || c.warp_tile.m == kWarpgroupRows) &&
           refuse(out, TILEWISE_TEXT("warp tile {}", print_shape(c.warp_tile)), TILEWISE_TEXT("{} rows", kLeastRows));
}

constexpr ConfigRule kRules[] = {gather_conv::kGathersAsThePipeline,
                                 {"code_warp_tile", "small warp tiles are for GEMM only", small_warps},
                                 kOneWaveAlongK,
                                 gather_conv::kWholeSteps,
                                 gather_conv::kOneProduct,
                                 gather_conv::kVectorsAlongChannels,
                                 kDrainsVectors};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"gpu/simt_conv", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace simt_conv

constinit const Family kSimtConv = {
    .id = FamilyId::simt_conv,
    .backend = Backend::cuda,
    .description = "an implicit product of fp32 in plain arithmetic whose threads gather the activation: any problem",
    .ops = kEveryConv,
    .pipelines = gather_conv::kPipelines,
    .fixed = gather_conv::kFixed,
    .rules = simt_conv::kRules,
    .spec = block_spec,
    .plan = gather_grid,
    .work = {gather_conv_work<double>, gather_conv_work<Term>, gather_conv_work<Noted>, gather_conv_least,
             block_gemm_columns},
    .source = simt_conv::source,
};

}  // namespace tilewise
