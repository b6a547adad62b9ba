// SPDX-License-Identifier: MIT
// The row of a family that is made for a test: a product of fp32 in three loops.
#include "family/code_rules.hpp"
#include "family/cpu/cpu_source.hpp"
#include "family/cpu/partition.hpp"
#include "family/cpu/works.hpp"
#include "family/families.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace toy_gemm {
namespace {

bool other_types(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.dtype != DType::fp32 && refuse(out, TILEWISE_TEXT("{}", name_of(c.dtype)), TILEWISE_TEXT("fp32"));
}
constexpr ConfigRule kRules[] = {{"code_types", "three loops of floats", other_types}};

std::optional<LaunchPlan> plan(const Problem& p, const KernelConfig& c, const ArchSpec&, int threads, Rejected*) {
    return partition(gemm_view(p), c, threads);
}

std::string source(const KernelConfig& c, const ArchSpec&) { return cpu_source("toy_gemm", c, ""); }

}  // namespace
}  // namespace toy_gemm

constinit const Family kToyGemm = {
    .id = FamilyId::toy_gemm,
    .backend = Backend::cpu,
    .description = "three loops",
    .ops = kGemmOnly,
    .rules = toy_gemm::kRules,
    .spec = block_spec,
    .plan = toy_gemm::plan,
    .work = {blocked_gemm_work<double>, blocked_gemm_work<Term>, blocked_gemm_work<Noted>},
    .source = toy_gemm::source,
};

}  // namespace tilewise
