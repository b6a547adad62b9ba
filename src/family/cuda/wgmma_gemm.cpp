// SPDX-License-Identifier: MIT
#include <algorithm>

#include "config/packing.hpp"
#include "family/code_rules.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/warpgroup_rules.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace wgmma_gemm {
namespace {

using warpgroup_rules::kLineBytes;

bool has_producer(const KernelConfig& c) { return c.pipeline == Pipeline::compv5 || c.pipeline == Pipeline::compv6; }

// Blocks that share tiles, or read a packed B, work alone and from whole operands.
bool works_alone(const KernelConfig& c) { return c.stream_k != StreamK::off || c.pipeline == Pipeline::preshuffle; }

bool other_producers(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const int need = has_producer(c) ? 1 : 0;
    return c.producer_waves != need && refuse(out, TILEWISE_TEXT("{} producer waves", c.producer_waves),
                                              TILEWISE_TEXT("{} with pipeline {}", need, name_of(c.pipeline)));
}
void correct_producers(KernelConfig& c, const ArchSpec&) { c.producer_waves = has_producer(c) ? 1 : 0; }

// Three products of halves need halves, which waves that only load put into shared memory.
bool halves_without_producer(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.math == Math::tf32x3 && !has_producer(c) &&
           refuse(out, TILEWISE_TEXT("tf32x3 with pipeline {}", name_of(c.pipeline)),
                  TILEWISE_TEXT("compv5 or compv6"));
}

// Operands that tensor copies cannot read are packed first; there is no use for widths in between.
bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const std::int64_t bytes = bytes_of(c.dtype);
    const auto fits = [&](int vector) { return vector == 1 || vector * bytes == kPackedBytes; };
    return !(fits(c.vector_a) && fits(c.vector_b)) &&
           refuse(out, TILEWISE_TEXT("vectors of {} and {} elements", c.vector_a, c.vector_b),
                  TILEWISE_TEXT("1 or {}", kPackedBytes / bytes));
}

bool other_depth(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.tile.k * bytes_of(c.dtype) != kLineBytes && refuse(out, TILEWISE_TEXT("a tile of depth {}", c.tile.k),
                                                                TILEWISE_TEXT("{}", kLineBytes / bytes_of(c.dtype)));
}

// The operand of the tile's columns, where it is contiguous along them, comes in whole lines.
bool partial_lines(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool columns_along_k = c.swap_ab ? is_row(c.layout, 0) : !is_row(c.layout, 1);
    return !columns_along_k && c.tile.n * bytes_of(c.dtype) % kLineBytes != 0 &&
           refuse(out, TILEWISE_TEXT("{} columns of a B that lies along them", c.tile.n),
                  TILEWISE_TEXT("whole lines of {} bytes", kLineBytes));
}

bool other_columns(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.warp_tile.n != c.tile.n &&
           refuse(out, TILEWISE_TEXT("warp tile {} of tile {}", print_shape(c.warp_tile), print_shape(c.tile)),
                  TILEWISE_TEXT("all columns of the tile"));
}

bool column_results(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !is_row(c.layout, 2) &&
           refuse(out, TILEWISE_TEXT("layout {}", name_of(c.layout)), TILEWISE_TEXT("a C that lies along n"));
}

bool shared_swap(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.swap_ab && c.cluster != Shape2{} &&
           refuse(out, TILEWISE_TEXT("swap_ab in a cluster"), TILEWISE_TEXT("one or the other"));
}

bool not_alone(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool whole = c.vector_a > 1 && c.vector_b > 1 && c.cluster == Shape2{} && c.pipeline != Pipeline::compv5;
    return works_alone(c) && !whole &&
           refuse(out, TILEWISE_TEXT("stream_k or preshuffle with narrow vectors, a cluster or compv5"),
                  TILEWISE_TEXT("wide vectors, no cluster, another pipeline"));
}

// The sums that blocks add up in a cluster take the place of the stages; rows of sums are a little longer than the tile's. Such blocks have
// no workspace, so neither have they packed operands.
bool sums_do_not_fit(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (!c.cluster_k) return false;
    constexpr std::int64_t kLongerRows = 8, kSumBytes = 4;
    const std::int64_t sums = std::max((c.tile.m + kLongerRows) * c.tile.n, (c.tile.n + kLongerRows) * c.tile.m);
    const bool fits = sums * kSumBytes <= std::int64_t{c.stages} * (c.tile.m + c.tile.n) * kLineBytes;
    const std::int64_t bytes = bytes_of(c.dtype);
    const bool unpacked = c.vector_a * bytes == kPackedBytes && c.vector_b * bytes == kPackedBytes;
    return !(unpacked && !works_alone(c) && c.pipeline != Pipeline::compv5 && fits) &&
           refuse(out, TILEWISE_TEXT("cluster_k with {} stages of tile {}", c.stages, print_shape(c.tile)),
                  TILEWISE_TEXT("room for the sums, wide vectors, no stream_k, preshuffle or compv5"));
}

// Two blocks that share a unit leave so many sums to each thread that computes.
bool too_few_registers(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (c.blocks_per_unit == 1 || !has_producer(c)) return false;
    const int most_sums = c.wave.m == 1 ? 128 : 64;
    return !(c.blocks_per_unit == 2 && c.tile.m * c.tile.n <= most_sums * 128 * c.wave.m && c.math != Math::tf32x3 &&
             c.pipeline == Pipeline::compv6 && c.cluster == Shape2{} && c.stream_k == StreamK::off && !c.persistent) &&
           refuse(out, TILEWISE_TEXT("{} blocks on a unit", c.blocks_per_unit),
                  TILEWISE_TEXT("1; or 2 with compv6 and at most {} sums of a thread, alone and not persistent",
                                most_sums));
}

constexpr Pipeline kPipelines[] = {Pipeline::compv6, Pipeline::compv5,         Pipeline::comp_async,
                                   Pipeline::mem,    Pipeline::basic_async_v1, Pipeline::preshuffle};
constexpr ConfigRule kRules[] = {
    {"code_producer", "one wave loads where the pipeline has producers", other_producers, correct_producers},
    {"code_halves", "halves of tf32x3 are made by waves that load", halves_without_producer},
    {"code_vectors", "tensor copies read whole packs; anything else is packed first", other_vectors},
    {"code_depth", "a stage is one line of 128 bytes deep", other_depth},
    warpgroup_rules::kBoxes,
    {"code_lines", "columns come in whole lines", partial_lines},
    warpgroup_rules::kWarpgroups,
    kOneWaveAlongN,
    kOneWaveAlongK,
    {"code_columns", "one instruction has all columns of the tile", other_columns},
    {"code_row_results", "results leave along n", column_results},
    kStagedResults,
    {"code_swap", "clusters share the rows of A and the columns of B", shared_swap},
    {"code_alone", "blocks that share tiles, or read a packed B, read whole operands", not_alone},
    {"code_cluster_sums", "the sums of a cluster take the place of the stages", sums_do_not_fit},
    {"code_registers", "blocks that share a unit share its registers", too_few_registers},
};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/wgmma_gemm/wgmma_gemm", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace wgmma_gemm

constinit const Family kWgmmaGemm = {
    .id = FamilyId::wgmma_gemm,
    .backend = Backend::cuda,
    .description = "warpgroups multiply what tensor copies put into a ring of stages",
    .ops = kGemmOnly,
    .pipelines = wgmma_gemm::kPipelines,
    .fixed = {},
    .rules = wgmma_gemm::kRules,
    .spec = block_spec,
    .plan = block_grid,
    .work = {block_gemm_work<double>, block_gemm_work<Term>, block_gemm_work<Noted>, block_gemm_least,
             block_gemm_columns},
    .source = wgmma_gemm::source,
};

}  // namespace tilewise
