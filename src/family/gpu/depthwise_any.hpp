// SPDX-License-Identifier: MIT
// The family's row, for every backend: its template names no vendor.
#pragma once

#include "family/gpu/conv_grid.hpp"
#include "family/gpu/depthwise_rules.hpp"

namespace tilewise::depthwise_any {

bool compiled_strides(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_vectors(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
std::string source(const KernelConfig& config, const ArchSpec& arch);

inline constexpr ConfigRule kRules[] = {
    depthwise_rules::kSplitWeights,
    kOneWaveAlongN,
    kOneWaveAlongK,
    {"code_compile_time", "the family learns the filter at launch", compiled_strides,
     [](KernelConfig& c, const ArchSpec&) { c.ct_stride = c.ct_dilation = Extents{}; }},
    {"code_vectors", "vectors run along channels", other_vectors}};

constexpr Family row(Backend backend, const FamilyWork& work) {
    return {
        .id = FamilyId::depthwise_any,
        .backend = backend,
        .description = "one output at a time in plain arithmetic: any filter, any layout",
        .ops = kEveryConv,
        .pipelines = depthwise_rules::kBasic,
        .fixed = depthwise_rules::kPlainFixed,
        .rules = kRules,
        .spec = block_spec,
        .plan = depthwise_grid,
        .work = work,
        .source = source,
    };
}

}  // namespace tilewise::depthwise_any
