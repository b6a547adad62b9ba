// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include "family/code_rules.hpp"
#include "family/cpu/cpu_source.hpp"
#include "family/cpu/partition.hpp"
#include "family/cpu/works.hpp"
#include "family/families.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace blocked_conv {
namespace {

// Counts the taps of the innermost dimension where the config says so; 0 otherwise. Classes of backward data have taps of their own.
int inner_taps(const KernelConfig& c) {
    if (c.specialization == Specialization::filter_1x1 || c.specialization == Specialization::filter_1x1_stride1)
        return 1;
    return c.specialization == Specialization::filter_3x3 && c.op != Op::conv_bwd_data ? 3 : 0;
}

std::optional<LaunchPlan> plan(const Problem& p, const KernelConfig& c, const ArchSpec&, int threads, Rejected*) {
    return partition(gemm_view(p), c, threads);
}

std::string source(const KernelConfig& c, const ArchSpec&) {
    return cpu_source("blocked_conv", c,
                      cpu_pipeline_line(c) + cpu_conv_lines(c) +
                          fmt::format("    static constexpr int inner_taps = {};\n", inner_taps(c)));
}

}  // namespace
}  // namespace blocked_conv

constinit const Family kBlockedConv = {
    .id = FamilyId::blocked_conv,
    .backend = Backend::cpu,
    .description = "an implicit product: blocks of the activation are packed tap by tap, or read where they lie",
    .ops = kEveryConv,
    .spec = block_spec,
    .plan = blocked_conv::plan,
    .work = {blocked_conv_work<double>, blocked_conv_work<Term>, blocked_conv_work<Noted>, blocked_conv_least,
             blocked_conv_columns},
    .source = blocked_conv::source,
};

}  // namespace tilewise
