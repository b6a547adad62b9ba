// SPDX-License-Identifier: MIT
#include "family/gpu/depthwise_strips.hpp"

#include "config/depthwise_spec.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise::depthwise_strips {

bool no_stride(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.ct_stride.rank == 0 &&
           refuse(out, TILEWISE_TEXT("a filter without a stride"), TILEWISE_TEXT("both compiled in"));
}

bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.op == Op::conv_bwd_weight && c.vector_b != c.vector_a &&
           refuse(out, TILEWISE_TEXT("vectors of {} and {}", c.vector_a, c.vector_b), TILEWISE_TEXT("the same"));
}

static int height_of(const KernelConfig& c) { return c.tile.m / (c.wave.m * c.warp_tile.m); }

bool other_strips(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const int along = strip_lanes_along(c, arch);
    return (along == 0 || c.warp_tile.m % along != 0 || c.tile.n != c.warp_tile.n ||
            (c.ndim == 1 && height_of(c) != 1)) &&
           refuse(out,
                  TILEWISE_TEXT("tile {}, warp tile {}, vector_a {}", print_shape(c.tile), print_shape(c.warp_tile),
                                c.vector_a),
                  TILEWISE_TEXT("lanes that share out channels and outputs evenly"));
}

bool long_lines(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    constexpr std::int64_t kMaskBits = 32;
    const std::int64_t inputs = strip_line_inputs(c, c.warp_tile.m / strip_lanes_along(c, arch));
    return inputs > kMaskBits &&
           refuse(out, TILEWISE_TEXT("{} inputs of a line", inputs), TILEWISE_TEXT("at most {}", kMaskBits));
}

bool partial_turns(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const int width = c.warp_tile.m / strip_lanes_along(c, arch);
    const bool whole =
        width % extent_from_last(c.ct_stride, 0) == 0 && height_of(c) % extent_from_last(c.ct_stride, 1) == 0;
    return c.op == Op::conv_bwd_data && !whole &&
           refuse(out, TILEWISE_TEXT("strips of {} x {}", width, height_of(c)),
                  TILEWISE_TEXT("multiples of the stride"));
}

bool too_many_sums(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    constexpr std::int64_t kMostSums = 128;  // of a thread
    const int width = c.warp_tile.m / strip_lanes_along(c, arch);
    const std::int64_t sums =
        (c.op == Op::conv_bwd_weight ? product(c.ct_filter) : width * strip_window_rows(c)) * c.vector_a;
    return sums > kMostSums &&
           refuse(out, TILEWISE_TEXT("{} sums of a thread", sums), TILEWISE_TEXT("at most {}", kMostSums));
}

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"gpu/depthwise_strips", c.op == Op::conv_bwd_weight ? depthwise_rules::kSecondKernel : ""}, c,
                      arch, depthwise_rules::depthwise_lines(c, arch));
}

}  // namespace tilewise::depthwise_strips
