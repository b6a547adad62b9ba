// SPDX-License-Identifier: MIT
// Plans are those of every product on a GPU (family/gpu/block_grid.hpp); blocks have as many buffers as their loop fills.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "config/geometry.hpp"
#include "family/code_rules.hpp"
#include "family/families.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/gpu_source.hpp"
#include "family/hip/mfma_gemm_work.hpp"
#include "family/hip/mfma_rules.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace mfma_gemm {

constexpr Pipeline kPipelines[] = {
    Pipeline::basic_v1, Pipeline::mem,        Pipeline::compv3,         Pipeline::compv4,    Pipeline::compv5,
    Pipeline::compv6,   Pipeline::comp_async, Pipeline::basic_async_v1, Pipeline::preshuffle};
constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "swap_ab", "cluster_k", "math"};
constexpr int kWave = 64, kChunkBytes = 16, kRun = 4, kSumBytes = 4, kMostCopies = 63;

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

// Direct copies of a wave for a tile of each operand: at most 63 may be under way while a ring waits for those before them.
std::int64_t copies_of(const KernelConfig& c, const ArchSpec& arch, std::int64_t tile_bytes) {
    const std::int64_t access = std::min(c.vector_a * bytes_of(c.dtype), c.vector_b * bytes_of(c.dtype_b));
    const std::int64_t piece = access < arch.direct_copy_bytes ? kSumBytes : arch.direct_copy_bytes;
    return tile_bytes / (threads_per_block(c, arch) * piece);
}

// A config names one buffer or two. The waves of compv5 take turns with two whatever it says, and a ring of direct copies has three where
// they have a place: while one is read and one is filled, a third is waited for.
int loop_buffers(const KernelConfig& c, const ArchSpec& arch) {
    switch (c.pipeline) {
        case Pipeline::comp_async:
        case Pipeline::preshuffle: {
            const std::int64_t tile_bytes = block_shared_bytes(c, arch) / buffer_count(c);
            return tile_bytes * 3 <= arch.shared_bytes && copies_of(c, arch, tile_bytes) <= kMostCopies ? 3 : 2;
        }
        case Pipeline::compv4:
        case Pipeline::compv5:
        case Pipeline::compv6: return 2;
        default: return 1;
    }
}
std::int64_t loop_bytes(const KernelConfig& c, const ArchSpec& arch) {
    return block_shared_bytes(c, arch) / buffer_count(c) * loop_buffers(c, arch);
}
LaunchSpec spec(const KernelConfig& c, const ArchSpec& arch) {
    LaunchSpec spec = block_spec(c, arch);
    spec.shared_bytes = loop_bytes(c, arch);
    return spec;
}

bool other_buffers(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const int named = std::min(loop_buffers(c, arch), 2), need = c.pipeline == Pipeline::compv5 ? 1 : named;
    if (buffer_count(c) != need) {
        return refuse(out, TILEWISE_TEXT("{} buffers for {}", buffer_count(c), name_of(c.pipeline)),
                      TILEWISE_TEXT("{}", need));
    }
    return loop_bytes(c, arch) > arch.shared_bytes &&
           refuse(out,
                  TILEWISE_TEXT("{} bytes for the {} buffers of {}", loop_bytes(c, arch), loop_buffers(c, arch),
                                name_of(c.pipeline)),
                  TILEWISE_TEXT("at most {}", arch.shared_bytes));
}

bool odd_groups(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.pipeline == Pipeline::compv5 && wave_count(c) % 2 != 0 &&
           refuse(out, TILEWISE_TEXT("{} waves", wave_count(c)), TILEWISE_TEXT("two groups that take turns"));
}

// Kernels that miss a limit of tools/isa_report in their main loop: sums of a lane that leave too few registers to the operands are moved
// about. Backward data that is widened needs the most; so do the places of many lines that are looked up by single elements of 8 bits.
bool crowded(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    constexpr std::int64_t kMostSums = 128, kMostWidenedSums = 64, kMostLines = 16;
    const bool small = is_8bit_float(c.dtype), data = c.op == Op::conv_bwd_data;
    const std::int64_t lines = std::int64_t{c.tile.m} * c.tile.k / threads_per_block(c, arch);
    if (bytes_of(c.dtype) == 1 && (data || c.op == Op::conv_fwd) && c.vector_a == 1 && lines > kMostLines) {
        return refuse(out, TILEWISE_TEXT("{} lines of a lane by single elements", lines),
                      TILEWISE_TEXT("at most {}", kMostLines));
    }
    const std::int64_t most = small && !arch.small_float_products && data ? kMostWidenedSums : kMostSums;
    const std::int64_t sums = accumulators_per_thread(c, arch);
    return sums > most && refuse(out, TILEWISE_TEXT("{} sums of a lane", sums), TILEWISE_TEXT("at most {}", most));
}

bool uneven_waves(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool even = c.tile.m % (c.wave.m * c.warp_tile.m) == 0 && c.tile.n % (c.wave.n * c.warp_tile.n) == 0;
    return !even && refuse(out, TILEWISE_TEXT("tile {} for {} waves", print_shape(c.tile), print_shape(c.wave)),
                           TILEWISE_TEXT("whole warp tiles for each"));
}

// Sums leave through the operands' buffers (kernels/gpu/drain.hpp), a square's rows and at least one run of each lane at a time.
bool crosses_runs(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const std::int64_t room = loop_bytes(c, arch), run = std::int64_t{kRun} * kWave / c.warp_tile.m;
    std::int64_t columns = c.tile.n / c.wave.n;
    while (columns > kRun && columns * c.warp_tile.m * wave_count(c) * kSumBytes > room) columns /= 2;
    const std::int64_t along = contiguous_axis(c, 2) == Axis::n ? columns : c.warp_tile.m;
    return (columns % run != 0 || along % c.vector_c != 0) &&
           refuse(out, TILEWISE_TEXT("vectors of {} results of {} columns", c.vector_c, columns),
                  TILEWISE_TEXT("whole vectors, and {} columns that leave a wave together", run));
}

std::optional<LaunchPlan> within_grid(std::optional<LaunchPlan> plan, Rejected* why) {
    constexpr std::int64_t kMostThreads = std::int64_t{1} << 32;  // of a grid; HIP launches fewer
    if (!plan) return plan;
    const GpuGrid& grid = *plan->gpu();
    const std::int64_t threads = std::int64_t{grid.blocks} * grid.block.threads;
    if (threads < kMostThreads) return plan;
    refuse(why, TILEWISE_TEXT("{} blocks of {} threads", grid.blocks, grid.block.threads),
           TILEWISE_TEXT("fewer than {} threads, or a persistent kernel", kMostThreads));
    return std::nullopt;
}

std::string loop_lines(const KernelConfig& c, const ArchSpec& arch) {
    return fmt::format(
        "    static constexpr bool interwave = {}, small_float_products = {}, turned_reads = {};\n"
        "    static constexpr int direct_bytes = {}, ring_buffers = {}, dies = {};\n",
        c.scheduler == Scheduler::interwave, arch.small_float_products, arch.turned_reads, arch.direct_copy_bytes,
        loop_buffers(c, arch), arch.dies);
}

namespace {

// Waves that share out k take whole steps of it each, and leave their sums where the operands were.
bool uneven_k(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (c.wave.k == 1) return false;
    const std::int64_t step = std::int64_t{kWave} / c.warp_tile.m * kChunkBytes * c.wave.k;
    const std::int64_t sums = std::int64_t{c.wave.k - 1} * c.tile.m * c.tile.n * kSumBytes;
    const bool shares = c.stream_k == StreamK::off && c.tile.k * bytes_of(c.dtype) % step == 0 &&
                        std::has_single_bit(static_cast<unsigned>(c.wave.k)) && sums <= loop_bytes(c, arch);
    return !shares && refuse(out, TILEWISE_TEXT("{} waves along k of {}", c.wave.k, c.tile.k),
                             TILEWISE_TEXT("whole steps for each, no stream_k, and room for their sums"));
}

constexpr ConfigRule kRules[] = {
    {"code_warp_tile", "one matrix instruction has this shape", other_square},
    {"code_wave_k", "waves share out k evenly", uneven_k, [](KernelConfig& c, const ArchSpec&) { c.wave.k = 1; }},
    {"code_waves", "a wave has whole squares of sums", uneven_waves},
    {"code_depth", "a lane has 16 bytes along k", other_depth},
    {"code_buffers", "a pipeline has as many buffers as it fills", other_buffers},
    {"code_registers", "sums are not moved about in the loop", crowded},
    {"code_turns", "half of the waves multiply while the others fetch", odd_groups},
    {"code_results", "vectors of results stay within a wave's columns", crosses_runs},
};

// Lanes have offsets of 32 bits, signed, from a tile's first element; operands of single elements have addresses instead.
bool is_too_far(const Problem& p, const KernelConfig& c, int operand, Rejected* why) {
    const DType dtype = operand == 0 ? c.dtype : c.dtype_b;
    const int vector = operand == 0 ? c.vector_a : c.vector_b, extent = operand == 0 ? c.tile.m : c.tile.n;
    const bool along_k = contiguous_axis(c, operand) == Axis::k,
               packed = operand == 1 && c.pipeline == Pipeline::preshuffle;
    if (packed || (along_k && vector == 1 && bytes_of(dtype) < 4)) return false;
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    const std::int64_t lines = along_k ? extent : c.tile.k, most = kMost / (lines + 1) / bytes_of(dtype);
    const std::int64_t stride = leading_stride(p, operand);
    return stride > most &&
           refuse(why, TILEWISE_TEXT("{} elements from line to line of {}", stride, operand == 0 ? "A" : "B"),
                  TILEWISE_TEXT("at most {}", most));
}
std::optional<LaunchPlan> plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int threads,
                               Rejected* why) {
    if (is_too_far(p, c, 0, why) || is_too_far(p, c, 1, why)) return std::nullopt;
    return within_grid(block_grid(p, c, arch, threads, why), why);
}

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"hip/mfma_gemm/mfma_gemm", kReduceLine}, c, arch,
                      "    static constexpr bool uses_mfma = true;\n" + loop_lines(c, arch));
}

}  // namespace
}  // namespace mfma_gemm

constinit const Family kMfmaGemm = {
    .id = FamilyId::mfma_gemm,
    .backend = Backend::hip,
    .description = "blocks whose waves multiply with MFMA from shared memory",
    .ops = kGemmOnly,
    .pipelines = mfma_gemm::kPipelines,
    .has_interwave = true,
    .fixed = mfma_gemm::kFixed,
    .rules = mfma_gemm::kRules,
    .spec = mfma_gemm::spec,
    .plan = mfma_gemm::plan,
    .searches = true,
    .work = {mfma_gemm_work<double>, mfma_gemm_work<Term>, mfma_gemm_work<Noted>,
             least_of_any_plan<mfma_gemm_work<double>>},
    .source = mfma_gemm::source,
};

}  // namespace tilewise
