// SPDX-License-Identifier: MIT
// The launch of a kernel for a problem, as a value with equality and JSON.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "config/arch_spec.hpp"
#include "family/launch_spec.hpp"
#include "kernels/common/args.hpp"
#include "problem/facts.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// How the copy engine walks over the pixels of an image, the innermost dimension first: from `lower` to the last pixel plus
// `upper`, in steps.
struct Im2colSpec {
    int dims = 2;
    std::array<std::int64_t, 3> size{}, lower{}, upper{}, step{};

    bool operator==(const Im2colSpec&) const = default;
};

// Boxes of pixels, the innermost dimension first, of `box` positions along each, and so many images.
struct PixelBoxSpec {
    std::array<std::int64_t, 3> size{};
    std::array<int, 3> box{};
    int step = 1;  // of the innermost one: every so many pixels of the box
    int images = 1;

    bool operator==(const PixelBoxSpec&) const = default;
};

// A tensor as the copy engine of a GPU sees it: lines of neighbouring elements, with the box that one copy moves. The
// pointer is patched in at every launch.
struct TensorMapSpec {
    DType dtype = DType::fp32;
    std::array<std::int64_t, 3> size{};          // elements along a line, lines, matrices
    std::array<std::int64_t, 2> stride_bytes{};  // between lines, between matrices
    TensorBox box;
    // Where lines are the channels of pixels, and matrices are images: copies walk over pixels as a filter's tap does.
    std::optional<Im2colSpec> im2col;
    // The same tensor, of which copies take boxes of pixels.
    std::optional<PixelBoxSpec> pixels;
    // Where in the workspace the tensor is, for an operand that is packed there before the kernel starts.
    std::optional<std::int64_t> workspace_offset;
    // Which operand it is of (A, B, C), where not of the one in whose place it is given.
    std::optional<std::size_t> operand;

    bool operator==(const TensorMapSpec&) const = default;
};

inline bool operator==(const KernelPart& a, const KernelPart& b) {
    return a.m_begin == b.m_begin && a.m_end == b.m_end && a.n_begin == b.n_begin && a.n_end == b.n_end &&
           a.batch_begin == b.batch_begin && a.batch_end == b.batch_end && a.k_part == b.k_part;
}

using TensorMaps = std::array<TensorMapSpec, 3>;  // of A, B and C

// The tasks of a CPU.
struct CpuParts {
    std::vector<KernelPart> expand;  // what it writes to the workspace beforehand, if anything
    std::vector<KernelPart> run;     // what it computes
    std::vector<KernelPart> reduce;  // what it adds up afterwards, if anything
    int threads = 1;

    bool operator==(const CpuParts&) const = default;
};

// The blocks of a GPU.
struct GpuGrid {
    LaunchSpec block;
    int blocks = 0;
    int reduce_blocks = 0;  // split-K: blocks of the kernel that adds up afterwards
    int reduce_threads = 0;
    int pack_blocks = 0;  // blocks of the kernel that packs operands first
    int pack_threads = 0;
    // The kernel that packs B ahead, and what it writes; 0 for a kernel that reads B as it is.
    int pack_b_blocks = 0;
    int pack_b_threads = 0;
    std::int64_t pack_b_shared_bytes = 0;
    std::int64_t packed_b_bytes = 0;
    int raster_group = 1;                     // tiles side by side in the order they are taken
    int split_k = 0;                          // parts of the reduction, where the plan chose them
    std::array<int, 4> patch = {};            // output pixels of a block of a convolution that stages patches
    FamilyArgs family_args = {};              // for the kernel, in its family's words
    std::optional<GemmView> product{};        // of row-major A and B, where the blocks of a convolution multiply these
    std::optional<TensorMaps> tensor_maps{};  // where the kernel uses them

    bool operator==(const GpuGrid&) const = default;
};

// How a launch is spread over a device: all that the host works out before the pointers are known. Made once for a problem and a
// config (may_run.hpp): workspace, price and launches follow from it.
struct LaunchPlan {
    LaunchPlan() = default;
    LaunchPlan(CpuParts parts) : share(std::move(parts)) {}
    LaunchPlan(const GpuGrid& grid) : share(grid) {}

    std::variant<CpuParts, GpuGrid> share;
    std::int64_t workspace_bytes = 0;

    // Null on the other kind of device.
    const CpuParts* cpu() const { return std::get_if<CpuParts>(&share); }
    const GpuGrid* gpu() const { return std::get_if<GpuGrid>(&share); }
    // Parts of the reduction, where the family plans them.
    int planned_parts() const { return gpu() ? gpu()->split_k : 0; }

    bool operator==(const LaunchPlan&) const = default;
};

static_assert(std::equality_comparable<LaunchPlan>);

Json launch_to_json(const LaunchPlan& launch);  // what is 0, or empty, is left out

}  // namespace tilewise
