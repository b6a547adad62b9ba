// SPDX-License-Identifier: MIT
// A spec describes a GPU kernel's blocks, from its config alone: the host needs it for every launch, and the generated source
// carries the same numbers, which the template checks when it is compiled.
#pragma once

#include <array>
#include <cstdint>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

// The part of an operand that one bulk tensor copy moves: `rows` lines of `columns` neighbouring elements. Nothing (0 x 0)
// where the kernel reads or writes the operand by ordinary accesses.
struct TensorBox {
    int rows = 0;
    int columns = 0;

    bool operator==(const TensorBox&) const = default;
};

struct LaunchSpec {
    int threads = 0;                // of a block
    std::int64_t shared_bytes = 0;  // of a block
    Shape2 cluster;
    // Registers of a thread, where waves that only copy hand over theirs to those that compute; 0 where they do not.
    int copy_registers = 0, compute_registers = 0;
    bool persistent = false;              // blocks walk over tiles until none are left
    std::array<TensorBox, 3> boxes = {};  // of A, B and C; swizzled over the bytes of a line

    bool operator==(const LaunchSpec&) const = default;

    bool uses_tensor_maps() const { return boxes[0].rows > 0; }
};

// As the config's family says (family.hpp).
LaunchSpec launch_spec(const KernelConfig& config, const ArchSpec& arch);
// The block of every family so far: what differs between them is in config/geometry.hpp.
LaunchSpec block_spec(const KernelConfig& config, const ArchSpec& arch);

// Whether vectors of C fit the columns of sums that leave a warp together (Drain in kernels/gpu/drain.hpp): those of its part of
// the tile, or fewer where the operands' buffers have no place for them.
bool drains_whole_vectors(const KernelConfig& config);

// Warpgroups that may share a tile: two, or three where each thread of so many has registers for its sums.
int most_warpgroups(const KernelConfig& config);

}  // namespace tilewise
