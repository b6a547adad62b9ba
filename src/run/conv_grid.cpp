// SPDX-License-Identifier: MIT
#include "run/conv_grid.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "config/conv_tiles.hpp"
#include "config/family_id.hpp"
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

std::int64_t tiles_of(const Problem& p, const KernelConfig& c, const ArchSpec& arch, FamilyId family) {
    if (is_patch_conv(family)) return 0;  // counts its blocks by itself
    if (is_depthwise(family)) return depthwise_blocks(p, c, arch);
    return family == FamilyId::im2col_conv ? tensor_conv_tiles(p, c) : gather_conv_tiles(p, c);
}

// Of a tile, along k.
std::int64_t steps_of(const Problem& p, const KernelConfig& c, FamilyId family) {
    return family == FamilyId::im2col_conv ? tensor_conv_steps(p, c) : divide_up(gemm_view(p).k, c.tile.k);
}

}  // namespace

LaunchGeometry conv_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const FamilyId family = family_of(c);
    if (family == FamilyId::patch_wgrad) return halo_weight_grid(p, c, arch);
    if (family == FamilyId::resident_filter_conv) return tap_conv_grid(p, c, arch);
    if (family == FamilyId::shifted_wgrad) return tap_weight_grid(p, c, arch);
    if (family == FamilyId::first_layer_conv) return halo_first_grid(p, c, arch);
    LaunchGeometry geometry;
    geometry.block = launch_spec(c, arch);
    const std::int64_t tiles = tiles_of(p, c, arch, family), cluster = std::int64_t{c.cluster.m} * c.cluster.n;
    const std::int64_t resident = std::int64_t{arch.units} * c.blocks_per_unit / cluster * cluster;
    geometry.blocks = to_int(c.stream_k != StreamK::off ? stream_blocks(tiles, steps_of(p, c, family), resident)
                             : c.persistent             ? std::min(tiles, resident)
                                                        : tiles);
    geometry.raster_group =
        family == FamilyId::im2col_conv ? raster_group_of(c, resident / cluster) : std::max(1, c.raster_group);
    if (is_patch_conv(family)) set_halo_grid(geometry, p, c, arch);
    if (is_depthwise(family)) set_depthwise_geometry(geometry, p, c, arch);
    if (sums_in_workspace(c)) {
        is_depthwise(family) ? add_depthwise_reduction(geometry, p, c.split_k) : add_reduction(geometry, gemm_view(p));
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
