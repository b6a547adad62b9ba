// SPDX-License-Identifier: MIT
#include "family/cuda/block_gemm.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace mma_gemm {
namespace {

constexpr ConfigRule kRules[] = {kOneWaveAlongK, kDrainsVectors};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/mma_gemm/mma_gemm", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace mma_gemm

constinit const Family kMmaGemm = {
    .id = FamilyId::mma_gemm,
    .backend = Backend::cuda,
    .description = "blocks whose warps multiply with mma.sync from shared memory",
    .ops = kGemmOnly,
    .pipelines = block_gemm::kPipelines,
    .fixed = block_gemm::kFixed,
    .rules = mma_gemm::kRules,
    .spec = block_spec,
    .plan = block_grid,
    .work = {block_gemm_work<double>, block_gemm_work<Term>, block_gemm_work<Noted>, block_gemm_least,
             block_gemm_columns},
    .source = mma_gemm::source,
};

}  // namespace tilewise
