// SPDX-License-Identifier: MIT
#include "family/cuda/gemv_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace gemv {
namespace {

// A block's warps share out lines and k.
bool other_tile(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kLaneBytes = 128;  // of a line that the lanes of a warp read together
    return gemv_rules::other_tile(
        c, {c.wave.m * c.warp_tile.m, c.warp_tile.n, static_cast<int>(c.wave.k * kLaneBytes / bytes_of(c.dtype))}, out);
}

constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "stream_k", "math", "split_k", "cluster_k"};
constexpr ConfigRule kRules[] = {gemv_rules::kSameSize,
                                 gemv_rules::kVectors,
                                 kOneWaveAlongN,
                                 {"code_tile", "the waves' lines make the tile", other_tile},
                                 kIsPersistent};

std::string source(const KernelConfig& c, const ArchSpec& arch) { return gpu_source({"gpu/gemv"}, c, arch); }

}  // namespace
}  // namespace gemv

constinit const Family kGemv = {
    .id = FamilyId::gemv,
    .backend = Backend::cuda,
    .description = "a few vectors, in one pass over a large operand that lies along k",
    .ops = kGemmOnly,
    .pipelines = gemv_rules::kPipelines,
    .fixed = gemv::kFixed,
    .rules = gemv::kRules,
    .spec = block_spec,
    .plan = block_grid,
    .work = {gemv_work<double>, gemv_work<Term>, gemv_work<Noted>},
    .source = gemv::source,
};

}  // namespace tilewise
