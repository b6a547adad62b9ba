// SPDX-License-Identifier: MIT
#include "config/geometry.hpp"
#include "family/code_rules.hpp"
#include "family/cuda/shifted_wgrad_grid.hpp"
#include "family/cuda/shifted_wgrad_plan.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace shifted_wgrad {
namespace {

constexpr int kRows = 64;

// Rows of products are (tap, c), or k, of warpgroup products; or strips of 16 channels on mma.sync.
bool other_shape(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostWaves = 8;  // 64 registers each
    const bool swapped = c.tile.m % (kRows * c.wave.m) == 0 && c.wave.n == 1 && c.warp_tile.n == c.tile.n;
    const bool plain = c.tile.m == kRows && c.wave.m == 1 && c.warp_tile.n * c.wave.n == c.tile.n &&
                       (c.warp_tile.n == 3 * kRows || c.warp_tile.n == 3 * kRows / 2);
    const bool strips = c.swap_ab && c.warp_tile == Shape3{16, 8, 16} && c.wave.m == 1 && c.wave.n == 4 &&
                        c.tile.n == kRows && c.tile.m % 16 == 0 && c.num_groups_to_merge % c.wave.n == 0;
    const bool wide = c.warp_tile.m == kRows && (c.swap_ab ? swapped : plain) && c.wave.k == 1 &&
                      (wave_count(c) + 1) * c.blocks_per_unit <= kMostWaves;
    return !strips && !wide &&
           refuse(out,
                  TILEWISE_TEXT("tile {}, wave {}, warp tile {}", print_shape(c.tile), print_shape(c.wave),
                                print_shape(c.warp_tile)),
                  TILEWISE_TEXT("rows of {} for warpgroups, or strips of 16 channels for 4 warps", kRows));
}

bool other_positions(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostPositions = 256, kStepPositions = 16, kSwizzleBytes = 1024;
    const int columns = shifted_wgrad_columns(c);
    return !(columns <= 2 * kRows && c.tile.k <= kMostPositions && c.tile.k % kStepPositions == 0 &&
             c.tile.k * shifted_wgrad_line_bytes(columns) % kSwizzleBytes == 0) &&
           refuse(out, TILEWISE_TEXT("{} positions of {} columns", c.tile.k, columns),
                  TILEWISE_TEXT("whole steps of {} up to {}, of at most {} columns", kStepPositions, kMostPositions,
                                2 * kRows));
}

bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kVector = 8;
    return (c.vector_a != kVector || c.vector_b != kVector) &&
           refuse(out, TILEWISE_TEXT("vectors of {} and {}", c.vector_a, c.vector_b), TILEWISE_TEXT("{}", kVector));
}

constexpr Pipeline kPipelines[] = {Pipeline::compv6};
constexpr std::string_view kFixed[] = {"split_image", "explicit_gemm",  "persistent",
                                       "cluster",     "specialization", "stream_k"};
constexpr ConfigRule kRules[] = {k16BitInputs,
                                 kChannelsLast,
                                 {"code_vectors", "positions come by accesses of 16 bytes", other_vectors},
                                 {"code_shape", "results of all taps stay in registers", other_shape},
                                 {"code_positions", "a line of shared memory is a position's columns", other_positions},
                                 kSumsMeet,
                                 kOneProducerWave,
                                 kNothingCompiledIn};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/shifted_wgrad/shifted_wgrad"}, c, arch);
}

}  // namespace
}  // namespace shifted_wgrad

constinit const Family kShiftedWgrad = {
    .id = FamilyId::shifted_wgrad,
    .backend = Backend::cuda,
    .description = "backward weight: x shifted by every tap meets dy over runs of positions",
    .ops = kWeightOnly,
    .pipelines = shifted_wgrad::kPipelines,
    .fixed = shifted_wgrad::kFixed,
    .rules = shifted_wgrad::kRules,
    .spec = block_spec,
    .plan = shifted_wgrad_grid,
    .searches = true,
    .work = {shifted_wgrad_work<double>, shifted_wgrad_work<Term>, shifted_wgrad_work<Noted>, shifted_wgrad_least},
    .source = shifted_wgrad::source,
};

}  // namespace tilewise
