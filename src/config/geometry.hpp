// SPDX-License-Identifier: MIT
// A config on an arch has these: threads, shared memory, repeats, the extents that vectors run along.
#pragma once

#include <cstdint>
#include <vector>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

std::int64_t wave_count(const KernelConfig& config);  // waves that compute
bool has_wide_waves(const KernelConfig& config, const ArchSpec& arch);
// Whether a warpgroup GEMM leaves room on its unit: for a second block, or one of the next kernel. Such blocks have one tile each.
bool shares_unit(const KernelConfig& config, const ArchSpec& arch);
// Threads of a block, producers included. On a CPU a wave is one thread's work, so this is the number of waves.
std::int64_t threads_per_block(const KernelConfig& config, const ArchSpec& arch);
std::int64_t accumulators_per_thread(const KernelConfig& config, const ArchSpec& arch);

// The arch of a chip whose fp64 units are few: without the warp tiles that multiply fp32 there.
void leave_out_doubles(ArchSpec& arch);

int buffer_count(const KernelConfig& config);  // operand tiles resident at once
// Shared memory of a block (on a CPU: cache), as its family says: stages of operand tiles and, where results are staged beside them,
// those; what a depthwise walk holds; or all that a block may have, of which a plan then takes what its problem needs.
std::int64_t block_shared_bytes(const KernelConfig& config, const ArchSpec& arch);
std::int64_t shared_bytes(const KernelConfig& config, const ArchSpec& arch);  // of all blocks on a unit

// Shared memory that each of the blocks on a unit may have, for families that use all of it; and that in whole KiB.
std::int64_t block_room_bytes(const KernelConfig& config, const ArchSpec& arch);
std::int64_t block_share_bytes(const KernelConfig& config, const ArchSpec& arch);
// Parts of a reduction that meet in a cluster's shared memory.
int cluster_parts(const KernelConfig& config);

// The axis of the tile along which an operand is contiguous in memory; a layout of `any` leaves it open.
enum class Axis { m, n, k, open };
Axis contiguous_axis(const KernelConfig& config, int operand);
// The tile extent along which operand 0 (A), 1 (B) or 2 (C) is contiguous in memory; 0 where a layout of `any`
// leaves it open.
int contiguous_tile_extent(const KernelConfig& config, int operand);

int vector_width(const KernelConfig& config, int operand);
void set_vector_width(KernelConfig& config, int operand, int width);
DType operand_dtype(const KernelConfig& config, int operand);
std::int64_t access_bytes(const KernelConfig& config, int operand);  // of one vector

// The warp tiles the arch lists for the config: those of its types, or the depthwise ones. Null for an unlisted pair.
const std::vector<Shape3>* warp_tiles_of(const KernelConfig& config, const ArchSpec& arch);

bool tile_is_multiple(const KernelConfig& config);  // tile = wave x warp tile x whole repeats, in m, n and k

}  // namespace tilewise
