// SPDX-License-Identifier: MIT
#include "run/halo_grid.hpp"

#include <cstring>

#include "config/halo_tile.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {

void set_halo_grid(LaunchGeometry& geometry, const Problem& problem, const KernelConfig& config, const ArchSpec& arch) {
    const auto choice = choose_halo_tile(problem, config, arch);
    if (!choice) return;
    const HaloTile& tile = choice->tile;
    geometry.patch = {tile.images, tile.extent[0], tile.extent[1], tile.extent[2]};
    geometry.blocks = choice->blocks;
    const HaloLaunch launch =
        halo_launch(kernel_conv(problem), tile, halo_kernel(config), config.tile.m / config.wave.m, choice->blocks);
    std::memcpy(geometry.geometry.data(), &launch, sizeof launch);
    geometry.block.shared_bytes = choice->plan.total_bytes;
}

}  // namespace tilewise
