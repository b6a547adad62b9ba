// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include "family/code_rules.hpp"
#include "family/cpu/cpu_source.hpp"
#include "family/cpu/direct_partition.hpp"
#include "family/cpu/works.hpp"
#include "family/families.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace direct_conv {
namespace {

// Outermost first over all dimensions that kernels know; zeros where nothing is known.
std::string extents_line(std::string_view name, const Extents& extents) {
    std::string values;
    for (int i = 0; i < kMaxSpatialDims; ++i) {
        const int d = i - (kMaxSpatialDims - extents.rank);
        values += fmt::format("{}{}", i == 0 ? "" : ", ", extents.rank == 0 ? 0 : d < 0 ? 1 : extents[d]);
    }
    return fmt::format("    static constexpr int {}[3] = {{{}}};\n", name, values);
}

// A direct kernel always packs the same, so the pipeline is not said.
std::optional<LaunchPlan> plan(const Problem& p, const KernelConfig& c, const ArchSpec&, int threads, Rejected*) {
    return direct_partition(p, c, threads);
}

std::string source(const KernelConfig& c, const ArchSpec&) {
    return cpu_source(
        "direct_conv", c,
        cpu_conv_lines(c) +
            fmt::format("    static constexpr bool depthwise = {};\n    static constexpr int merge = {};\n",
                        c.specialization == Specialization::depthwise, c.num_groups_to_merge) +
            extents_line("ct_filter", c.ct_filter) + extents_line("ct_stride", c.ct_stride) +
            extents_line("ct_dilation", c.ct_dilation));
}

}  // namespace
}  // namespace direct_conv

constinit const Family kDirectConv = {
    .id = FamilyId::direct_conv,
    .backend = Backend::cpu,
    .description = "no matrix product: each output channel, of few inputs, sums up its own",
    .ops = kEveryConv,
    .spec = block_spec,
    .plan = direct_conv::plan,
    .work = {direct_conv_work<double>, direct_conv_work<Term>, direct_conv_work<Noted>},
    .source = direct_conv::source,
};

}  // namespace tilewise
