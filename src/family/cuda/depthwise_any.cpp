// SPDX-License-Identifier: MIT
#include "config/depthwise_spec.hpp"
#include "family/cuda/conv_grid.hpp"
#include "family/cuda/cuda_source.hpp"
#include "family/cuda/depthwise_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace depthwise_any {
namespace {

bool compiled_strides(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return (c.ct_stride.rank > 0 || c.ct_dilation.rank > 0) &&
           refuse(out, TILEWISE_TEXT("a stride or dilation that is compiled in"),
                  TILEWISE_TEXT("none without a filter"));
}

bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool fits = c.op == Op::conv_bwd_weight ? c.vector_a == 1 && c.vector_b == 1
                                                  : c.vector_a == 1 || is_channels_last(c.layout);
    return !fits && refuse(out, TILEWISE_TEXT("vectors of {} and {} in {}", c.vector_a, c.vector_b, name_of(c.layout)),
                           TILEWISE_TEXT("1; or more along channels, but not in backward weight"));
}

constexpr ConfigRule kRules[] = {depthwise_rules::kSplitWeights,
                                 kOneWaveAlongN,
                                 kOneWaveAlongK,
                                 {"code_compile_time", "the family learns the filter at launch", compiled_strides,
                                  [](KernelConfig& c, const ArchSpec&) { c.ct_stride = c.ct_dilation = Extents{}; }},
                                 {"code_vectors", "vectors run along channels", other_vectors}};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return cuda_source({"gpu/depthwise_any", c.op == Op::conv_bwd_weight ? depthwise_rules::kSecondKernel : ""}, c,
                       arch, depthwise_rules::depthwise_lines(c));
}

}  // namespace
}  // namespace depthwise_any

constinit const Family kDepthwiseAny = {
    .id = FamilyId::depthwise_any,
    .backend = Backend::cuda,
    .description = "one output at a time in plain arithmetic: any filter, any layout",
    .ops = kEveryConv,
    .pipelines = depthwise_rules::kBasic,
    .fixed = depthwise_rules::kPlainFixed,
    .rules = depthwise_any::kRules,
    .spec = block_spec,
    .plan = depthwise_grid,
    .work = {depthwise_any_work<double>, depthwise_any_work<Term>},
    .source = depthwise_any::source,
};

}  // namespace tilewise
