// SPDX-License-Identifier: MIT
#include "family/cuda/block_gemm.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace fp64_gemm {
namespace {

bool partial_lines(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kLineFloats = 32;
    return c.tile.k % kLineFloats != 0 &&
           refuse(out, TILEWISE_TEXT("a tile of depth {}", c.tile.k), TILEWISE_TEXT("a multiple of {}", kLineFloats));
}

constexpr Pipeline kPipelines[] = {Pipeline::comp_async};
constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "swap_ab", "cluster_k", "stream_k"};
constexpr ConfigRule kRules[] = {{"code_fp64_layout", "fp64 units read fp32 along k", block_gemm::across_k},
                                 kOneWaveAlongK,
                                 {"code_fp64_lines", "stages are whole lines of shared memory", partial_lines},
                                 kDrainsVectors};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/fp64_gemm/fp64_gemm", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace fp64_gemm

constinit const Family kFp64Gemm = {
    .id = FamilyId::fp64_gemm,
    .backend = Backend::cuda,
    .description = "fp32 multiplied in fp64 matrix units, which is exact",
    .ops = kGemmOnly,
    .pipelines = fp64_gemm::kPipelines,
    .fixed = fp64_gemm::kFixed,
    .rules = fp64_gemm::kRules,
    .spec = block_spec,
    .plan = block_grid,
    .work = {block_gemm_work<double>, block_gemm_work<Term>, block_gemm_work<Noted>, block_gemm_least,
             block_gemm_columns},
    .source = fp64_gemm::source,
};

}  // namespace tilewise
