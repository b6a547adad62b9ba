// SPDX-License-Identifier: MIT
#include "family/gpu/block_grid.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "config/fit.hpp"
#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "config/workspace.hpp"
#include "kernels/common/stream_slots.hpp"
#include "kernels/common/to_int.hpp"

namespace tilewise {
namespace {

TensorMapSpec tensor_map(const Problem& p, int operand, const TensorBox& box) {
    const DType dtype = operand == 0 ? p.dtype_a : operand == 1 ? p.dtype_b : p.dtype_out;
    const std::int64_t bytes = bytes_of(dtype);
    const std::int64_t elements[] = {p.gemm.m * p.gemm.k, p.gemm.k * p.gemm.n, p.gemm.m * p.gemm.n};
    const std::int64_t length = contiguous_length(p, operand), lines = elements[operand] / length;
    const std::int64_t leading = leading_stride(p, operand), between = batch_stride(p, operand);
    // One matrix that serves the whole batch is one matrix; the kernel asks for the first every time.
    const bool shared = between == 0;
    TensorMapSpec map;
    map.dtype = dtype;
    map.size = {length, lines, shared ? 1 : p.gemm.batch};
    map.stride_bytes = {leading * bytes, (shared || p.gemm.batch == 1 ? lines * leading : between) * bytes};
    map.box = box;
    return map;
}

// The map of an operand that is packed first: lines, and matrices, follow each other.
TensorMapSpec packed_map(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int operand,
                         const TensorBox& box) {
    const PackedMatrices packed = packed_matrices(p, operand);
    TensorMapSpec map;
    map.dtype = operand == 0 ? p.dtype_a : p.dtype_b;
    map.size = {packed.length, packed.lines, packed.matrices};
    map.stride_bytes = {packed.line_bytes(), packed.line_bytes() * packed.lines};
    map.box = box;
    map.workspace_offset = packed_offset(p, c, arch, operand);
    return map;
}

// Copying what is not there takes time, so boxes end with a matrix that has fewer lines than a tile; the kernel counts on it
// (kernels/cuda/wgmma_gemm/wgmma_source.hpp).
bool is_trimmed(const KernelConfig& c, int operand) {
    return contiguous_axis(c, operand) == Axis::k && c.cluster == Shape2{};
}
void trim(TensorMapSpec& map) { map.box.rows = to_int(std::min<std::int64_t>(map.box.rows, map.size[1])); }

int pack_blocks_of(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int threads) {
    constexpr std::int64_t kBlocksPerUnit = 8;  // further packs are walked over
    std::int64_t packs = 0;
    for (int i = 0; i < 2; ++i) {
        if (packs_operand(c, arch, i))
            packs = std::max<std::int64_t>(packs, packed_matrices(p, i).bytes() / kPackedBytes);
    }
    return to_int(std::min(ceil_div(packs, threads), kBlocksPerUnit * arch.units));
}

}  // namespace

// Tiles that are computed at the same time should read few rows of A and columns of B in all: with strips of `group`
// clusters side by side, `resident` clusters span group x (resident / group) of them.
int raster_group_of(const KernelConfig& c, std::int64_t resident) {
    if (c.raster_group > 0) return c.raster_group;
    const bool along_n = c.raster == Raster::n;
    const std::int64_t m = std::int64_t{c.tile.m} * c.cluster.m, n = std::int64_t{c.tile.n} * c.cluster.n;
    const std::int64_t side = along_n ? m : n, along = along_n ? n : m;
    int best = 1;
    const auto span = [&](std::int64_t group) { return group * side + ceil_div(resident, group) * along; };
    constexpr int kWidest = 64;
    for (int group = 2; group <= kWidest; ++group) {
        if (span(group) < span(best)) best = group;
    }
    return best;
}

std::int64_t stream_blocks(std::int64_t tiles, std::int64_t steps, std::int64_t resident) {
    if (tiles >= resident) return resident;
    return tiles *
           stream_sharers(static_cast<unsigned>(to_int(resident / tiles)), static_cast<unsigned>(to_int(steps)));
}

namespace {

void add_pack_b(GpuGrid& grid, const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    constexpr std::int64_t kBlocksPerUnit = 4;  // further tiles are walked over
    constexpr int kThreads = 256;
    const PackedB packed = packed_b(p, c);
    grid.packed_b_bytes = packed.bytes();
    grid.pack_b_blocks = to_int(std::min<std::int64_t>(packed.tiles(), kBlocksPerUnit * arch.units));
    grid.pack_b_threads = kThreads;
    grid.pack_b_shared_bytes = packed.tile_bytes;
}

}  // namespace

void add_reduction(GpuGrid& grid, const GemmView& gemm) {
    constexpr int kReduceThreads = 256;
    constexpr std::int64_t kElementsPerThread = 4, kMostBlocks = 65536;  // further elements are walked over
    grid.reduce_threads = kReduceThreads;
    grid.reduce_blocks =
        to_int(std::min(ceil_div(gemm.m * gemm.n * gemm.batch, kReduceThreads * kElementsPerThread), kMostBlocks));
}

GpuGrid tile_grid(const KernelConfig& c, const ArchSpec& arch, std::int64_t tiles, std::int64_t steps) {
    GpuGrid plan;
    plan.block = launch_spec(c, arch);
    const std::int64_t cluster = std::int64_t{c.cluster.m} * c.cluster.n;
    const std::int64_t resident = std::int64_t{arch.units} * c.blocks_per_unit / cluster * cluster;
    plan.blocks = to_int(c.stream_k != StreamK::off ? stream_blocks(tiles, steps, resident)
                         : c.persistent             ? std::min(tiles, resident)
                                                    : tiles);
    plan.raster_group = std::max(1, c.raster_group);
    return plan;
}

std::optional<LaunchPlan> block_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int, Rejected*) {
    GpuGrid grid;
    grid.block = launch_spec(c, arch);
    // A cluster is a rectangle of tiles; where the last one is not whole, its blocks without a tile have nothing to do.
    const GemmView gemm = gemm_view(p);
    const std::int64_t rows = c.swap_ab ? gemm.n : gemm.m, columns = c.swap_ab ? gemm.m : gemm.n;
    const std::int64_t tiles = round_up(ceil_div(rows, c.tile.m), c.cluster.m) *
                               round_up(ceil_div(columns, c.tile.n), c.cluster.n) * gemm.batch * c.split_k;
    const std::int64_t cluster = std::int64_t{c.cluster.m} * c.cluster.n;
    const std::int64_t resident = std::int64_t{arch.units} * c.blocks_per_unit / cluster * cluster;
    grid.blocks = to_int(c.stream_k != StreamK::off ? stream_blocks(tiles, ceil_div(gemm.k, c.tile.k), resident)
                         : c.persistent             ? std::min(tiles, resident)
                                                    : tiles);
    if (c.pipeline == Pipeline::preshuffle) add_pack_b(grid, p, c, arch);
    grid.raster_group = raster_group_of(c, resident / cluster);
    if (sums_in_workspace(c)) add_reduction(grid, gemm);
    if (packs_operands(c, arch)) {
        constexpr int kPackThreads = 256;
        grid.pack_threads = kPackThreads;
        grid.pack_blocks = pack_blocks_of(p, c, arch, kPackThreads);
    }
    if (grid.block.uses_tensor_maps()) {
        TensorMaps& maps = grid.tensor_maps.emplace();
        for (int operand = 0; operand < 3; ++operand) {
            const TensorBox& box = grid.block.boxes[static_cast<std::size_t>(operand)];
            const bool packed = operand < 2 && packs_operand(c, arch, operand);
            TensorMapSpec& map = maps[static_cast<std::size_t>(operand)];
            map = packed ? packed_map(p, c, arch, operand, box) : tensor_map(p, operand, box);
            if (operand < 2 && is_trimmed(c, operand)) trim(map);
        }
    }
    return grid;
}

}  // namespace tilewise
