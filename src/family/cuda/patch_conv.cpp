// SPDX-License-Identifier: MIT
#include "family/cuda/patch_grid.hpp"
#include "family/cuda/patch_least.hpp"
#include "family/cuda/patch_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace patch_conv {
namespace {

// With one buffer only rows of 3 x 3 taps have proved right on a GPU.
bool one_buffer(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.stages <= 1 && c.specialization != Specialization::filter_3x3 &&
           refuse(out, TILEWISE_TEXT("{} stages", c.stages), TILEWISE_TEXT("2 or more, or specialization 3x3"));
}

constexpr Pipeline kPipelines[] = {Pipeline::comp_async, Pipeline::basic_async_v1};
constexpr ConfigRule kRules[] = {patch_rules::kConvTypes,
                                 patch_rules::kConvShape,
                                 kChannelsLast,
                                 patch_rules::kChunks,
                                 patch_rules::kResultWords,
                                 kStagedResults,
                                 kOneWaveAlongK,
                                 patch_rules::kTapRows,
                                 kNothingCompiledIn,
                                 {"code_stages", "patches are in a ring of buffers", one_buffer},
                                 kIsPersistent};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/patch_conv/patch_conv"}, c, arch);
}

}  // namespace
}  // namespace patch_conv

constinit const Family kPatchConv = {
    .id = FamilyId::patch_conv,
    .backend = Backend::cuda,
    .description =
        "patches of pixels are staged once by threads, and every tap reads them shifted: few channels per group",
    .ops = kDataConvs,
    .pipelines = patch_conv::kPipelines,
    .fixed = patch_rules::kConvFixed,
    .rules = patch_conv::kRules,
    .spec = block_spec,
    .plan = patch_grid,
    .searches = true,
    .work = {patch_conv_work<double>, patch_conv_work<Term>, patch_conv_work<Noted>, patch_conv_least},
    .source = patch_conv::source,
};

}  // namespace tilewise
