// SPDX-License-Identifier: MIT
#include "run/overlap.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "problem/operand_specs.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

constexpr std::array<std::string_view, 10> kOperandNames = {"a",  "b",  "c",  "bias",    "d0",
                                                            "d1", "d2", "d3", "scale_a", "scale_b"};
constexpr std::size_t kB = 1, kOutput = 2, kFirstD = 4;

using Pointers = std::array<const void*, kOperandNames.size()>;

Pointers pointers_of(const Operands& o) {
    return {o.a, o.b, o.c, o.bias, o.d[0], o.d[1], o.d[2], o.d[3], o.scale_a, o.scale_b};
}
static_assert(kMaxDTensors == 4);

bool is_d(std::size_t slot) { return slot >= kFirstD && slot < kFirstD + kMaxDTensors; }

// Dimensions that go on without a gap are one. Operands have at most two others: rows and batches of a GEMM.
RowNest nest_of(const OperandSpec& spec) {
    const std::int64_t element = bytes_of(spec.dtype);
    RowNest nest{1, 1, element, 0, 0};
    for (std::size_t i = spec.shape.size(); i-- > 0;) {
        const std::int64_t count = spec.shape[i], pitch = spec.strides[i] * element;
        if (count == 1) continue;
        if (nest.rows == 1 && pitch == nest.row_bytes) {
            nest.row_bytes *= count;
        } else if (nest.rows == 1) {
            nest.rows = count, nest.row_pitch = pitch;
        } else {
            nest.blocks = count, nest.block_pitch = pitch;
        }
    }
    return nest;
}

std::int64_t distance(const void* from, const void* to) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from));
}

// Nearly always they do not, and nothing else needs to be asked.
bool ranges_meet(const Footprint& written, const Footprint& other, std::int64_t distance) {
    return distance < written.bytes && distance > -other.bytes;
}

// How many bytes of the nest lie before this place.
std::int64_t bytes_before(const RowNest& nest, std::int64_t place) {
    if (place <= 0) return 0;
    const std::int64_t block = nest.blocks == 1 ? 0 : place / nest.block_pitch;
    if (block >= nest.blocks) return nest.blocks * nest.rows * nest.row_bytes;
    const std::int64_t in_block = place - block * nest.block_pitch;
    const std::int64_t row = nest.rows == 1 ? 0 : std::min(in_block / nest.row_pitch, nest.rows - 1);
    const std::int64_t in_row = std::min(in_block - row * nest.row_pitch, nest.row_bytes);
    return (block * nest.rows + row) * nest.row_bytes + in_row;
}

// Whether, counted from one multiple of all pitches to the next, the rows of each have places of their own.
bool take_turns(const RowNest& written, const RowNest& other, std::int64_t distance) {
    std::int64_t period = 0;
    for (const RowNest* nest : {&written, &other}) {
        if (nest->rows > 1) period = std::gcd(period, nest->row_pitch);
        if (nest->blocks > 1) period = std::gcd(period, nest->block_pitch);
    }
    if (period == 0) return false;
    const std::int64_t begin = (distance % period + period) % period;
    return begin >= written.row_bytes && begin + other.row_bytes <= period;
}

Status refused(std::string_view written, const Footprint& place, std::string_view other, std::int64_t distance) {
    return usage_error(fmt::format(
        "{} overlaps {}: it spans {} bytes, and {} begins {} bytes {} its start; it is written while "
        "{} is read, so give it memory of its own",
        written, other, place.bytes, other, std::max(distance, -distance), distance < 0 ? "before" : "after", other));
}

}  // namespace

Footprint Footprint::of(const RowNest& nest) {
    return {nest, (nest.blocks - 1) * nest.block_pitch + (nest.rows - 1) * nest.row_pitch + nest.row_bytes};
}

bool share_a_byte(const Footprint& written, const Footprint& other, std::int64_t distance) {
    if (!ranges_meet(written, other, distance)) return false;
    if (take_turns(written.nest, other.nest, distance)) return false;
    const RowNest& rows = other.nest;
    for (std::int64_t i = 0; i < rows.blocks; ++i) {
        for (std::int64_t j = 0; j < rows.rows; ++j) {
            const std::int64_t begin = distance + i * rows.block_pitch + j * rows.row_pitch;
            if (bytes_before(written.nest, begin) < bytes_before(written.nest, begin + rows.row_bytes)) return true;
        }
    }
    return false;
}

OverlapCheck::OverlapCheck(const Problem& problem, std::int64_t workspace_bytes, std::int64_t packed_b_bytes)
    : workspace_(Footprint::without_gaps(workspace_bytes)), packed_b_(Footprint::without_gaps(packed_b_bytes)) {
    for (const OperandSpec& spec : operand_specs(problem)) {
        const auto* name = std::find(kOperandNames.begin(), kOperandNames.end(), spec.name);
        const auto slot = static_cast<std::size_t>(name - kOperandNames.begin());
        const Footprint footprint = Footprint::of(nest_of(spec));
        if (slot == kB) b_ = footprint;
        if (slot == kOutput) {
            output_ = footprint;
        } else {
            others_.push_back({slot, slot == kB && problem.packed_b ? packed_b_ : footprint});
        }
    }
}

Status OverlapCheck::check_launch(const Operands& operands) const {
    const Pointers at = pointers_of(operands);
    const void* const output = operands.c;
    for (const auto& [slot, footprint] : others_) {
        const std::int64_t after = distance(output, at[slot]);
        if (!ranges_meet(output_, footprint, after) || (after == 0 && is_d(slot))) continue;
        if (!share_a_byte(output_, footprint, after)) continue;
        return refused("the output c", output_, kOperandNames[slot], after);
    }
    if (workspace_.bytes == 0) return {};
    const void* const workspace = operands.workspace;
    if (share_a_byte(workspace_, output_, distance(workspace, output))) {
        return refused("the workspace", workspace_, "c", distance(workspace, output));
    }
    for (const auto& [slot, footprint] : others_) {
        const std::int64_t after = distance(workspace, at[slot]);
        if (ranges_meet(workspace_, footprint, after) && share_a_byte(workspace_, footprint, after))
            return refused("the workspace", workspace_, kOperandNames[slot], after);
    }
    return {};
}

Status OverlapCheck::check_packing(const void* b, const void* packed) const {
    const std::int64_t after = distance(packed, b);
    if (!share_a_byte(packed_b_, b_, after)) return {};
    return refused("the packed form", packed_b_, "b", after);
}

}  // namespace tilewise
