// SPDX-License-Identifier: MIT
#include "family/cuda/patch_grid.hpp"

#include <algorithm>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/rule_groups.hpp"
#include "family/cuda/patch_fit.hpp"
#include "family/cuda/patch_tile.hpp"
#include "kernels/common/patch_conv_args.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {

namespace {

// x or y of all groups, of which copies take boxes of pixels: `channels` of each, every `step`-th along a line.
TensorMapSpec pixel_map(const Problem& p, const KernelConfig& c, bool is_x, std::int64_t channels,
                        PixelBoxSpec pixels) {
    const std::int64_t all = is_x ? p.conv.c : p.conv.k, bytes = bytes_of(c.dtype);
    const Extents size = is_x ? p.conv.in : output_size(p.conv);
    TensorMapSpec map;
    map.dtype = c.dtype;
    map.size = {all, product(size), p.conv.n};
    map.stride_bytes = {all * bytes, product(size) * all * bytes};
    map.box = {1, to_int(channels)};
    pixels.size = {1, 1, 1};
    for (int d = 0; d < size.rank; ++d) pixels.size[static_cast<std::size_t>(size.rank - 1 - d)] = size[d];
    map.pixels = pixels;
    return map;
}

// Maps of the staged tensor and of the results, where these leave as boxes.
TensorMaps box_maps(const Problem& p, const KernelConfig& c, const PatchConvPlan& choice) {
    const bool forward = c.op == Op::conv_fwd;
    const PatchShape& patch = choice.plan.patch;
    PixelBoxSpec in, out;
    in.step = patch.steps[2], in.images = patch.images;
    in.box = {patch.phase * patch.steps[2], patch.height, patch.depth};
    TensorMaps maps;
    maps[0] = pixel_map(p, c, forward, patch.pitch / bytes_of(c.dtype), in);
    if (choice.plan.out_stages == 0) return maps;
    out.images = choice.tile.images;
    out.box = {choice.tile.extent[2], choice.tile.extent[1], choice.tile.extent[0]};
    maps[2] = pixel_map(p, c, !forward, choice.plan.out_pitch / bytes_of(c.dtype_out), out);
    maps[2].dtype = c.dtype_out;
    return maps;
}

}  // namespace

std::optional<LaunchPlan> patch_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch, int,
                                     Rejected* why) {
    if (refuses_patch(problem, config, arch, why)) return std::nullopt;
    const auto choice = patch_conv_plan(problem, config, arch);
    if (!choice) {
        refuse(why, TILEWISE_TEXT("weights and the smallest patch of pixels"),
               TILEWISE_TEXT("at most {} bytes of shared memory", block_room_bytes(config, arch)));
        return std::nullopt;
    }
    GpuGrid grid;
    grid.block = launch_spec(config, arch);
    grid.raster_group = std::max(1, config.raster_group);
    const PatchTile& tile = choice->tile;
    grid.patch = {tile.images, tile.extent[0], tile.extent[1], tile.extent[2]};
    grid.blocks = choice->blocks;
    const PatchConvArgs launch = patch_conv_args(kernel_conv(problem), tile, choice->kernel,
                                                 config.tile.m / config.wave.m, choice->blocks, choice->interleaved);
    grid.family_args.set(launch);
    grid.block.shared_bytes = choice->plan.total_bytes;
    if (family_of(config) == FamilyId::patch_box_conv) grid.tensor_maps = box_maps(problem, config, *choice);
    return grid;
}

}  // namespace tilewise
