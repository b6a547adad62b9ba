// SPDX-License-Identifier: MIT
#include "family/cuda/block_gemm.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace simt_gemm {
namespace {

// Warp tiles of 16 rows read operands along k only.
bool small_across_k(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return c.warp_tile == Shape3{16, 16, 1} && block_gemm::across_k(c, arch, out);
}

constexpr ConfigRule kRules[] = {{"code_small_warps", "small warp tiles read operands along k", small_across_k},
                                 {"code_wave_k", "waves share out k evenly", block_gemm::uneven_k,
                                  [](KernelConfig& c, const ArchSpec&) { c.wave.k = 1; }},
                                 kDrainsVectors};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"gpu/simt_gemm", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace simt_gemm

constinit const Family kSimtGemm = {
    .id = FamilyId::simt_gemm,
    .backend = Backend::cuda,
    .description = "fp32 in plain arithmetic, from shared memory",
    .ops = kGemmOnly,
    .pipelines = block_gemm::kPipelines,
    .fixed = block_gemm::kFixed,
    .rules = simt_gemm::kRules,
    .spec = block_spec,
    .plan = block_grid,
    .work = {block_gemm_work<double>, block_gemm_work<Term>, block_gemm_work<Noted>, block_gemm_least,
             block_gemm_columns},
    .source = simt_gemm::source,
};

}  // namespace tilewise
