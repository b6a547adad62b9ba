// SPDX-License-Identifier: MIT
// The family's row, for every backend: its template names no vendor.
#pragma once

#include "family/gpu/conv_grid.hpp"
#include "family/gpu/depthwise_rules.hpp"

namespace tilewise::depthwise_strips {

bool no_stride(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_vectors(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_strips(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool long_lines(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool partial_turns(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool too_many_sums(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
std::string source(const KernelConfig& config, const ArchSpec& arch);

inline constexpr ConfigRule kRules[] = {
    depthwise_rules::kSplitWeights,
    kOneWaveAlongN,
    kOneWaveAlongK,
    {"code_compile_time", "filter and stride are compiled in", no_stride},
    kChannelsLast,
    {"code_vectors", "both tensors move as many channels at once", other_vectors},
    {"code_strips", "lanes have strips of outputs", other_strips},
    {"code_line", "places in a line are bits of a word", long_lines},
    {"code_turns", "strips of backward data have whole turns of the stride", partial_turns},
    {"code_sums", "a thread has registers for its sums", too_many_sums},
};

constexpr Family row(Backend backend, const FamilyWork& work) {
    return {
        .id = FamilyId::depthwise_strips,
        .backend = backend,
        .description = "threads walk down strips of outputs with the filter in registers, in plain arithmetic",
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

}  // namespace tilewise::depthwise_strips
