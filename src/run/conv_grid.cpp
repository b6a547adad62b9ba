// SPDX-License-Identifier: MIT
#include "run/conv_grid.hpp"

#include <algorithm>

#include "codegen/conv_family.hpp"
#include "config/fit.hpp"
#include "problem/facts.hpp"
#include "run/block_grid.hpp"

namespace tilewise {
namespace {

std::int64_t blocks(std::int64_t size, std::int64_t unit) { return (size + unit - 1) / unit; }

// Blocks walk over tiles of the GEMM view, group by group.
std::int64_t gather_tiles(const Problem& p, const KernelConfig& c) {
    const GemmView gemm = gemm_view(p);
    return blocks(gemm.m, c.tile.m) * blocks(gemm.n, c.tile.n) * gemm.batch * c.split_k;
}

std::int64_t tiles_of(const Problem& p, const KernelConfig& c) {
    switch (conv_family(c)) {
        case ConvFamily::gather: return gather_tiles(p, c);
        case ConvFamily::halo:
        case ConvFamily::tensor:
        case ConvFamily::depthwise: break;
    }
    return 0;
}

}  // namespace

LaunchGeometry conv_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    LaunchGeometry geometry;
    geometry.block = launch_spec(c, arch);
    const std::int64_t tiles = tiles_of(p, c), resident = std::int64_t{arch.units} * c.blocks_per_unit;
    geometry.blocks = static_cast<int>(c.persistent ? std::min(tiles, resident) : tiles);
    geometry.raster_group = std::max(1, c.raster_group);
    if (sums_in_workspace(c)) add_reduction(geometry, gemm_view(p));
    return geometry;
}

}  // namespace tilewise
