// SPDX-License-Identifier: MIT
// Blocks and plans are those of the product on mma.sync (family/cuda/mma_gemm.cpp): the loops are the same, the instruction is another.
#include <bit>
#include <cstdint>

#include "config/geometry.hpp"
#include "family/code_rules.hpp"
#include "family/cuda/block_grid.hpp"
#include "family/cuda/cuda_source.hpp"
#include "family/families.hpp"
#include "family/hip/mfma_gemm_work.hpp"
#include "family/hip/mfma_rules.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace mfma_gemm {

constexpr Pipeline kPipelines[] = {Pipeline::basic_v1, Pipeline::mem, Pipeline::compv3, Pipeline::compv4};
constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "swap_ab", "cluster_k", "math"};
constexpr int kWave = 64, kChunkBytes = 16, kRun = 4, kSumBytes = 4;

bool other_square(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool is_square = c.warp_tile.m == c.warp_tile.n && (c.warp_tile.m == 16 || c.warp_tile.m == 32);
    return !is_square &&
           refuse(out, TILEWISE_TEXT("warp tile {}", print_shape(c.warp_tile)), TILEWISE_TEXT("squares of 16 or 32"));
}

// The lanes of a wave have 16 bytes each, those that are left over from a side of the square next to each other along k.
bool other_depth(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const std::int64_t bytes = c.tile.k * bytes_of(c.dtype), step = std::int64_t{kWave} / c.warp_tile.m * kChunkBytes;
    const bool fits = bytes % step == 0 && std::has_single_bit(static_cast<std::uint64_t>(bytes));
    return !fits && refuse(out, TILEWISE_TEXT("{} bytes along k", bytes),
                           TILEWISE_TEXT("a power of two that is a multiple of {}", step));
}

bool other_buffers(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const int need = c.pipeline == Pipeline::compv4 ? 2 : 1;
    return buffer_count(c) != need &&
           refuse(out, TILEWISE_TEXT("{} buffers for {}", buffer_count(c), name_of(c.pipeline)),
                  TILEWISE_TEXT("{}", need));
}

bool uneven_waves(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool even = c.tile.m % (c.wave.m * c.warp_tile.m) == 0 && c.tile.n % (c.wave.n * c.warp_tile.n) == 0;
    return !even && refuse(out, TILEWISE_TEXT("tile {} for {} waves", print_shape(c.tile), print_shape(c.wave)),
                           TILEWISE_TEXT("whole warp tiles for each"));
}

// Sums leave through the operands' buffers (kernels/gpu/drain.hpp), a square's rows and at least one run of each lane at a time.
bool crosses_runs(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const std::int64_t room = block_shared_bytes(c, arch), run = std::int64_t{kRun} * kWave / c.warp_tile.m;
    std::int64_t columns = c.tile.n / c.wave.n;
    while (columns > kRun && columns * c.warp_tile.m * wave_count(c) * kSumBytes > room) columns /= 2;
    const std::int64_t along = contiguous_axis(c, 2) == Axis::n ? columns : c.warp_tile.m;
    return (columns % run != 0 || along % c.vector_c != 0) &&
           refuse(out, TILEWISE_TEXT("vectors of {} results of {} columns", c.vector_c, columns),
                  TILEWISE_TEXT("whole vectors, and {} columns that leave a wave together", run));
}

namespace {

constexpr ConfigRule kRules[] = {
    {"code_warp_tile", "one matrix instruction has this shape", other_square},
    kOneWaveAlongK,
    {"code_waves", "a wave has whole squares of sums", uneven_waves},
    {"code_depth", "a lane has 16 bytes along k", other_depth},
    {"code_buffers", "a pipeline has as many buffers as it fills", other_buffers},
    {"code_results", "vectors of results stay within a wave's columns", crosses_runs},
};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return cuda_source({"hip/mfma_gemm/mfma_gemm", kReduceLine}, c, arch,
                       "    static constexpr bool uses_mfma = true;\n");
}

}  // namespace
}  // namespace mfma_gemm

constinit const Family kMfmaGemm = {
    .id = FamilyId::mfma_gemm,
    .backend = Backend::hip,
    .description = "blocks whose waves multiply with MFMA from shared memory",
    .ops = kGemmOnly,
    .pipelines = mfma_gemm::kPipelines,
    .fixed = mfma_gemm::kFixed,
    .rules = mfma_gemm::kRules,
    .spec = block_spec,
    .plan = block_grid,
    .work = {mfma_gemm_work<double>, mfma_gemm_work<Term>},
    .source = mfma_gemm::source,
};

}  // namespace tilewise
