// SPDX-License-Identifier: MIT
#include "run/conv_grid.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "codegen/conv_family.hpp"
#include "config/conv_tiles.hpp"
#include "config/fit.hpp"
#include "config/halo_first_plan.hpp"
#include "config/halo_weight_plan.hpp"
#include "config/tap_conv_plan.hpp"
#include "config/tap_weight_plan.hpp"
#include "config/workspace.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"
#include "run/block_grid.hpp"
#include "run/depthwise_grid.hpp"
#include "run/halo_first_grid.hpp"
#include "run/halo_grid.hpp"
#include "run/halo_weight_grid.hpp"
#include "run/tap_conv_grid.hpp"
#include "run/tap_weight_grid.hpp"
#include "run/tensor_grid.hpp"

namespace tilewise {
namespace {

std::int64_t tiles_of(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    switch (conv_family(c)) {
        case ConvFamily::gather: return gather_conv_tiles(p, c);
        case ConvFamily::tensor: return tensor_conv_tiles(p, c);
        case ConvFamily::depthwise: return depthwise_blocks(p, c, arch);
        case ConvFamily::halo: break;  // counts its blocks by itself
    }
    return 0;
}

// Of a tile, along k.
std::int64_t steps_of(const Problem& p, const KernelConfig& c) {
    return conv_family(c) == ConvFamily::tensor ? tensor_conv_steps(p, c) : divide_up(gemm_view(p).k, c.tile.k);
}

}  // namespace

LaunchGeometry conv_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    if (is_halo_weight(c)) return halo_weight_grid(p, c, arch);
    if (is_tap_conv(c)) return tap_conv_grid(p, c, arch);
    if (is_tap_weight(c)) return tap_weight_grid(p, c, arch);
    if (is_halo_first(c)) return halo_first_grid(p, c, arch);
    LaunchGeometry geometry;
    geometry.block = launch_spec(c, arch);
    const ConvFamily family = conv_family(c);
    const std::int64_t tiles = tiles_of(p, c, arch), cluster = std::int64_t{c.cluster.m} * c.cluster.n;
    const std::int64_t resident = std::int64_t{arch.units} * c.blocks_per_unit / cluster * cluster;
    geometry.blocks = to_int(c.stream_k != StreamK::off ? stream_blocks(tiles, steps_of(p, c), resident)
                             : c.persistent             ? std::min(tiles, resident)
                                                        : tiles);
    geometry.raster_group =
        family == ConvFamily::tensor ? raster_group_of(c, resident / cluster) : std::max(1, c.raster_group);
    if (family == ConvFamily::halo) set_halo_grid(geometry, p, c, arch);
    if (family == ConvFamily::depthwise) set_depthwise_geometry(geometry, p, c, arch);
    if (sums_in_workspace(c)) {
        family == ConvFamily::depthwise ? add_depthwise_reduction(geometry, p, c.split_k)
                                        : add_reduction(geometry, gemm_view(p));
    }
    if (c.explicit_gemm) {
        // Any number does: each walks over what is left.
        constexpr int kExpandThreads = 256, kBlocksPerUnit = 8;
        geometry.pack_threads = kExpandThreads;
        geometry.pack_blocks = kBlocksPerUnit * arch.units;
    }
    if (geometry.block.uses_tensor_maps()) geometry.tensor_maps = tensor_conv_maps(p, c, geometry.block);
    return geometry;
}

}  // namespace tilewise
