// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include "family/code_rules.hpp"
#include "family/cpu/cpu_source.hpp"
#include "family/cpu/partition.hpp"
#include "family/cpu/works.hpp"
#include "family/families.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace blocked_gemm {
namespace {

std::optional<LaunchPlan> plan(const Problem& p, const KernelConfig& c, const ArchSpec&, int threads, Rejected*) {
    return partition(gemm_view(p), c, threads);
}

std::string source(const KernelConfig& c, const ArchSpec&) {
    return cpu_source("blocked_gemm", c,
                      cpu_pipeline_line(c) + fmt::format("    static constexpr bool swap_ab = {};\n", c.swap_ab));
}

}  // namespace
}  // namespace blocked_gemm

constinit const Family kBlockedGemm = {
    .id = FamilyId::blocked_gemm,
    .backend = Backend::cpu,
    .description = "micro-kernels on packed blocks that stay in the caches; one row reads B as it lies",
    .ops = kGemmOnly,
    .spec = block_spec,
    .plan = blocked_gemm::plan,
    .work = {blocked_gemm_work<double>, blocked_gemm_work<Term>, blocked_gemm_work<Noted>, blocked_gemm_least,
             blocked_gemm_columns},
    .source = blocked_gemm::source,
};

}  // namespace tilewise
