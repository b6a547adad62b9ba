// SPDX-License-Identifier: MIT
#include "family/cuda/first_layer_grid.hpp"
#include "family/cuda/patch_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace first_layer_conv {
namespace {

bool partial_columns(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kColumns = 16;
    return c.tile.n % kColumns != 0 &&
           refuse(out, TILEWISE_TEXT("{} columns", c.tile.n), TILEWISE_TEXT("a multiple of {}", kColumns));
}

bool narrow_results(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.vector_c * bytes_of(c.dtype_out) < 4 &&
           refuse(out, TILEWISE_TEXT("vector_c {}", c.vector_c), TILEWISE_TEXT("4 bytes or more"));
}

constexpr std::string_view kFixed[] = {"vector_b", "cluster",       "producer_waves", "split_k",
                                       "stream_k", "explicit_gemm", "split_image",    "num_groups_to_merge",
                                       "swap_ab",  "specialization"};
constexpr ConfigRule kRules[] = {k16BitInputs,
                                 kMmaShape,
                                 kChannelsLast,
                                 kOneWaveAlongN,
                                 kOneWaveAlongK,
                                 {"code_columns", "warps have pairs of products", partial_columns},
                                 {"code_results", "results leave in words", narrow_results},
                                 kStagedResults,
                                 kNothingCompiledIn,
                                 kIsPersistent};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/first_layer_conv/first_layer_conv"}, c, arch);
}

}  // namespace
}  // namespace first_layer_conv

constinit const Family kFirstLayerConv = {
    .id = FamilyId::first_layer_conv,
    .backend = Backend::cuda,
    .description = "few channels, taken one by one together with their neighbours along w",
    .ops = kForwardOnly,
    .pipelines = kAnyConvPipeline,
    .fixed = first_layer_conv::kFixed,
    .rules = first_layer_conv::kRules,
    .spec = block_spec,
    .plan = first_layer_grid,
    .searches = true,
    .work = {first_layer_work<double>, first_layer_work<Term>, first_layer_work<Noted>},
    .source = first_layer_conv::source,
};

}  // namespace tilewise
