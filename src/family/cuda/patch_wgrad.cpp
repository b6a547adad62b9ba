// SPDX-License-Identifier: MIT
#include "family/code_rules.hpp"
#include "family/cuda/patch_least.hpp"
#include "family/cuda/patch_wgrad_grid.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace patch_wgrad {
namespace {

bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kVector = 8;
    return !(c.vector_a == kVector && (c.vector_b == kVector || c.vector_b == 1)) &&
           refuse(out, TILEWISE_TEXT("vectors of {} and {}", c.vector_a, c.vector_b),
                  TILEWISE_TEXT("{0}, and 1 or {0}", kVector));
}

bool not_swapped(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !c.swap_ab && refuse(out, TILEWISE_TEXT("the product as it is"), TILEWISE_TEXT("swap_ab"));
}

bool one_buffer(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.stages < 2 && refuse(out, TILEWISE_TEXT("{} stages", c.stages), TILEWISE_TEXT("2 or more"));
}

bool uneven_groups(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.num_groups_to_merge != 1 && c.num_groups_to_merge % c.wave.n != 0 &&
           refuse(out, TILEWISE_TEXT("{} groups for {} waves", c.num_groups_to_merge, c.wave.n),
                  TILEWISE_TEXT("1, or a multiple of the waves along n"));
}

constexpr std::string_view kFixed[] = {"split_image", "explicit_gemm",  "persistent", "producer_waves",
                                       "cluster",     "specialization", "stream_k"};
constexpr ConfigRule kRules[] = {
    k16BitInputs,
    {"code_swap", "ldmatrix turns the transposed product round", not_swapped,
     [](KernelConfig& c, const ArchSpec&) { c.swap_ab = true; }},
    kChannelsLast,
    {"code_vectors", "patches come in chunks of 16 bytes", other_vectors},
    kMmaShape,
    {"code_stages", "patches are in a ring of buffers", one_buffer},
    kSumsMeet,
    kNothingCompiledIn,
    {"code_groups", "waves have groups of their own", uneven_groups},
};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/patch_wgrad/patch_wgrad"}, c, arch);
}

}  // namespace
}  // namespace patch_wgrad

constinit const Family kPatchWgrad = {
    .id = FamilyId::patch_wgrad,
    .backend = Backend::cuda,
    .description = "backward weight from staged patches of pixels, all taps at once: few channels per group",
    .ops = kWeightOnly,
    .pipelines = kAnyConvPipeline,
    .fixed = patch_wgrad::kFixed,
    .rules = patch_wgrad::kRules,
    .spec = block_spec,
    .plan = patch_wgrad_grid,
    .searches = true,
    .work = {patch_wgrad_work<double>, patch_wgrad_work<Term>, patch_wgrad_work<Noted>, patch_wgrad_least},
    .source = patch_wgrad::source,
};

}  // namespace tilewise
