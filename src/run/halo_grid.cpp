// SPDX-License-Identifier: MIT
#include "run/halo_grid.hpp"

#include <cstring>

#include "config/halo_tile.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {

namespace {

// The staged tensor: x, or dy for backward data.
TensorMapSpec patch_map(const Problem& p, const KernelConfig& c, const HaloPatchShape& patch) {
    const bool is_x = c.op == Op::conv_fwd;
    const std::int64_t channels = is_x ? p.conv.c : p.conv.k, bytes = bytes_of(c.dtype);
    const Extents size = is_x ? p.conv.in : output_size(p.conv);
    TensorMapSpec map;
    map.dtype = c.dtype;
    map.size = {channels, product(size), p.conv.n};
    map.stride_bytes = {channels * bytes, product(size) * channels * bytes};
    map.box = {1, static_cast<int>(patch.pitch / bytes)};
    PixelBoxSpec pixels;
    pixels.size = {1, 1, 1};
    for (int d = 0; d < size.rank; ++d) pixels.size[static_cast<std::size_t>(size.rank - 1 - d)] = size[d];
    pixels.box = {patch.columns, patch.height, patch.depth};
    pixels.images = patch.images;
    map.pixels = pixels;
    return map;
}

}  // namespace

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
    if (stages_halo_boxes(config)) {
        geometry.tensor_maps = {patch_map(problem, config, choice->plan.patch), TensorMapSpec{}, TensorMapSpec{}};
    }
}

}  // namespace tilewise
