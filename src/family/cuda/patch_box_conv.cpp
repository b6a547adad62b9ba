// SPDX-License-Identifier: MIT
#include "config/cuda_arch.hpp"
#include "family/cuda/patch_grid.hpp"
#include "family/cuda/patch_least.hpp"
#include "family/cuda/patch_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace patch_box_conv {
namespace {

bool one_buffer(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.stages <= 1 && refuse(out, TILEWISE_TEXT("{} stages", c.stages), TILEWISE_TEXT("2 or more"));
}

bool no_copy_engine(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kFirstWithBoxes = 9;
    const auto arch = parse_cuda_arch(c.arch);
    return !(arch && arch->major >= kFirstWithBoxes) &&
           refuse(out, TILEWISE_TEXT("{}", c.arch), TILEWISE_TEXT("sm_90a or later, or another pipeline"));
}

constexpr Pipeline kPipelines[] = {Pipeline::mem};
constexpr ConfigRule kRules[] = {
    patch_rules::kConvTypes,
    patch_rules::kConvShape,
    kChannelsLast,
    patch_rules::kChunks,
    patch_rules::kResultWords,
    kStagedResults,
    kOneWaveAlongK,
    patch_rules::kTapRows,
    kNothingCompiledIn,
    {"code_stages", "patches are in a ring of buffers", one_buffer},
    {"code_copy_engine", "boxes of pixels need the copy engine of Hopper and later", no_copy_engine,
     [](KernelConfig& c, const ArchSpec&) { c.pipeline = Pipeline::comp_async; }},
    kIsPersistent};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/patch_box_conv/patch_box_conv"}, c, arch);
}

}  // namespace
}  // namespace patch_box_conv

constinit const Family kPatchBoxConv = {
    .id = FamilyId::patch_box_conv,
    .backend = Backend::cuda,
    .description = "patches of pixels come as boxes by the copy engine, and every tap reads them shifted",
    .ops = kDataConvs,
    .pipelines = patch_box_conv::kPipelines,
    .fixed = patch_rules::kConvFixed,
    .rules = patch_box_conv::kRules,
    .spec = block_spec,
    .plan = patch_grid,
    .searches = true,
    .work = {patch_conv_work<double>, patch_conv_work<Term>, patch_conv_work<Noted>, patch_conv_least},
    .source = patch_box_conv::source,
};

}  // namespace tilewise
