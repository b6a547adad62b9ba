// SPDX-License-Identifier: MIT
// The tile of output pixels that a halo kernel (gather=halo, forward and backward data) takes at a time: chosen for each
// problem, by what it would take. The rule that says whether a kernel fits a problem, the grid and the cost model ask here.
#pragma once

#include <functional>
#include <optional>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "kernels/common/patch_conv_layout.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// Whether a warp's steps are rows of 16 pixels below each other, which share what they read: 3 x 3 taps in two dimensions.
bool shares_patch_rows(const KernelConfig& config);
PatchConvKernel patch_conv_kernel(const KernelConfig& config);

struct PatchAxes {
    PatchAxis axis[kMaxKernelDims];
};
PatchAxes patch_axes(const KernelConv& conv, bool backward_data);

// Patches are short along every axis, whatever the tile: refuses filters and strides that are not.
bool refuses_patch_reach(const KernelConv& conv, Rejected* out);
// Whether a tile's patch, of so many bytes for each pixel, stays within `most_bytes`. Asked before the patch is laid out in 32 bits.
bool is_patch_within(const PatchAxes& axes, const PatchTile& tile, std::int64_t pixel_bytes, std::int64_t most_bytes);

// Staged pixels for each output of a tile of at most `most_rows` outputs, at least: what a filter reaches beyond a tile is shared by as
// many as there can be along an axis.
double least_patch_pixels(const PatchAxes& axes, int most_rows);

// A tile, how many cover all images, and the staged pixels that it reads: no layout has fewer.
struct CutPatch {
    PatchTile tile;
    std::int64_t tiles;
    int pixels;
};
// Calls visit for the tiles worth looking at: of at most `most_rows` rows and so many staged pixels, cutting every axis about evenly.
void each_patch_tile(const PatchAxes& axes, std::int64_t images, int most_rows, std::int64_t most_pixels,
                     const std::function<void(const CutPatch&)>& visit);

struct PatchConvPlan {
    PatchTile tile;
    PatchConvKernel kernel;  // with what of it the problem needs
    PatchConvLayout plan;
    std::int64_t tiles = 0;   // of pixels, for one slice of groups
    std::int64_t slices = 0;  // sets of merged groups, times the tiles of their columns
    int blocks = 0;           // of the launch
    int interleaved = 1;      // slices whose blocks follow each other
    double tile_cycles = 0;   // that a unit takes for a tile, about
    double cycles = 0;        // for all
};
// None where the kernel cannot take the problem: `why` says, unless null.
std::optional<PatchConvPlan> patch_conv_plan(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

// The plan that a launch was made from.
PatchConvPlan patch_conv_plan_of(const GpuGrid& grid, const Problem& problem, const KernelConfig& config);

}  // namespace tilewise
