// SPDX-License-Identifier: MIT
#include "run/halo_grid.hpp"

#include "config/halo_tile.hpp"

namespace tilewise {

void set_halo_grid(LaunchGeometry& geometry, const Problem& problem, const KernelConfig& config, const ArchSpec& arch) {
    const auto choice = choose_halo_tile(problem, config, arch);
    if (!choice) return;
    const HaloTile& tile = choice->tile;
    geometry.patch = {tile.images, tile.extent[0], tile.extent[1], tile.extent[2]};
    geometry.blocks = choice->blocks;
    geometry.block.shared_bytes = choice->plan.total_bytes;
}

}  // namespace tilewise
