// SPDX-License-Identifier: MIT
#include <algorithm>

#include "config/family_id.hpp"
#include "family/cuda/gemv_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace gemv_rows {
namespace {

// Half a warp reads neighbouring lines of a few k; of fewer where they begin anywhere, which takes more registers.
bool other_tile(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kHalfWarp = 16, kAccessBytes = 16;
    const int wide = static_cast<int>(kAccessBytes / bytes_of(c.dtype)), most = gemv_reads(c).anywhere ? 4 : 8;
    return gemv_rules::other_tile(c, {kHalfWarp * wide, c.warp_tile.n, c.wave.k * 2 * std::min(wide, most)}, out);
}

bool waves_along_m(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.wave.m != 1 && refuse(out, TILEWISE_TEXT("{} waves along m", c.wave.m), TILEWISE_TEXT("1"));
}

bool parts_apart(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.split_k != 1 && !c.cluster_k &&
           refuse(out, TILEWISE_TEXT("split_k {}", c.split_k), TILEWISE_TEXT("1, or cluster_k"));
}

constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "stream_k", "math", "persistent"};
constexpr ConfigRule kRules[] = {gemv_rules::kSameSize,
                                 gemv_rules::kVectors,
                                 kOneWaveAlongN,
                                 {"code_tile", "half warps make the tile", other_tile},
                                 {"code_wave_m", "one wave has all of m", waves_along_m},
                                 {"code_sums", "parts of the reduction meet in a cluster", parts_apart}};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/gemv_rows/gemv_rows"}, c, arch);
}

}  // namespace
}  // namespace gemv_rows

constinit const Family kGemvRows = {
    .id = FamilyId::gemv_rows,
    .backend = Backend::cuda,
    .description = "a few vectors, in one pass over a large operand that lies across k",
    .ops = kGemmOnly,
    .pipelines = gemv_rules::kPipelines,
    .fixed = gemv_rows::kFixed,
    .rules = gemv_rows::kRules,
    .spec = block_spec,
    .plan = block_grid,
    .work = {gemv_rows_work<double>, gemv_rows_work<Term>, gemv_rows_work<Noted>},
    .source = gemv_rows::source,
};

}  // namespace tilewise
