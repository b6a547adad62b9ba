// SPDX-License-Identifier: MIT
#include "config/tap_conv_plan.hpp"

#include <algorithm>
#include <limits>

#include "base/rounding.hpp"
#include "config/halo_weight_plan.hpp"
#include "config/rule_groups.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kProductRows = 64, kElementBytes = 2, kSwizzleBlock = 1024;
constexpr int kFullSteps = 4, kTaps = kTapConvFilter * kTapConvFilter;

std::int64_t ceil_divided(std::int64_t x, std::int64_t by) { return x >= 0 ? (x + by - 1) / by : -(-x / by); }

double strides_of(const KernelConfig& c) { return double(product(c.ct_stride)); }

// Positions along one axis, and how far before the image they begin.
struct Positions {
    std::int64_t extent, pad;
};
Positions axis_of(const KernelConv& conv, bool backward, int d) {
    const std::int64_t stride = conv.stride[d], pad = conv.pad[d], reach = (conv.filter[d] - 1) / stride;
    std::int64_t results = conv.out[d], begin = pad;
    // Zeros that every walk begins with, and positions up to the last pixel.
    std::int64_t zeros = ceil_divided(pad - std::min<std::int64_t>(stride, conv.filter[d]) + 1, stride);
    std::int64_t pixels = (conv.in[d] - 1 + pad) / stride + 1;
    if (backward) {
        results = (conv.in[d] - 1 + pad % stride) / stride + 1;
        begin = zeros = reach - pad / stride;
        pixels = conv.out[d] + begin;
    }
    const std::int64_t needed = std::min(results + reach, pixels);
    return {std::max({results, results + reach - std::max<std::int64_t>(0, zeros), needed}), begin};
}

bool refuses_problem(const Problem& p, const KernelConv& conv, Rejected* out) {
    if (!p.epilogue.empty() || !p.d_ops.empty() || p.scale != Scale::none || p.beta) {
        return refuse(out, TILEWISE_TEXT("an epilogue, D tensors, scales or beta"),
                      TILEWISE_TEXT("none of these, or gather=tensor"));
    }
    if (conv.dilation[1] != 1 || conv.dilation[2] != 1) {
        return refuse(out, TILEWISE_TEXT("dilation {}x{}", conv.dilation[1], conv.dilation[2]), TILEWISE_TEXT("1x1"));
    }
    // What the copy engine's bounding box may be larger or smaller than an image by.
    constexpr std::int64_t kMost = 100;
    for (int d = 1; d < kMaxKernelDims; ++d) {
        if (conv.pad[d] <= kMost && conv.out[d] * conv.stride[d] <= conv.in[d] + 2 * kMost) continue;
        return refuse(out,
                      TILEWISE_TEXT("a pad of {} and {} results of {} pixels", conv.pad[d], conv.out[d], conv.in[d]),
                      TILEWISE_TEXT("a pad of at most {}", kMost));
    }
    return false;
}

// Of a unit: products are bound by the matrix unit, or by shared memory, which gives 128 bytes a cycle.
double tile_cycles(const TapConvShape& s, const KernelConfig& c, std::int64_t rows) {
    constexpr double kBytesPerCycle = 128, kStoreCycles = 2.0;
    const double steps = (s.lines - 1) * double(kFullSteps) + s.last_steps, repeats = double(rows / kProductRows);
    const double product = std::max(c.tile.n / 2.0, double(kProductRows + c.tile.n) * 32 / kBytesPerCycle);
    const double walks = c.op == Op::conv_fwd ? strides_of(c) : 1;
    const double classes = c.op == Op::conv_fwd ? 1 : strides_of(c);
    const double line_bytes = (s.lines - 1) * 128.0 + tap_conv_line_bytes(s.last_steps);
    return kTaps * steps * repeats * product + walks * s.slot_lines * line_bytes / kBytesPerCycle +
           classes * double(rows) * c.tile.n * kElementBytes / kBytesPerCycle * kStoreCycles;
}

}  // namespace

bool is_tap_conv(const KernelConfig& c) {
    return (c.op == Op::conv_fwd || c.op == Op::conv_bwd_data) && c.gather == Gather::halo &&
           c.warp_tile.m == kProductRows;
}

std::optional<TapConvPlan> tap_conv_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch, Rejected* why) {
    if (p.op != c.op || c.wave.m < 1 || c.tile.m < 1 || c.tile.n < 1) return std::nullopt;
    const KernelConv conv = kernel_conv(p);
    if (refuses_problem(p, conv, why)) return std::nullopt;
    const bool backward = c.op == Op::conv_bwd_data;
    TapConvPlan plan{};
    TapConvShape& s = plan.shape;
    s.extent[0] = 1;
    for (int d = 1; d < kMaxKernelDims; ++d) {
        const Positions axis = axis_of(conv, backward, d);
        s.extent[d] = static_cast<int>(axis.extent), s.pad[d] = static_cast<int>(axis.pad);
    }
    const std::int64_t positions = conv.images * s.extent[1] * s.extent[2], rows = c.tile.m / c.wave.m;
    if (positions > std::numeric_limits<int>::max() / 2) {
        refuse(why, TILEWISE_TEXT("{} positions", positions), TILEWISE_TEXT("fewer than 2^30"));
        return std::nullopt;
    }
    s.tiles = static_cast<int>(divide_up(positions, rows));
    // A group that begins inside 32 bytes is copied from where these do.
    const std::int64_t channels = backward ? conv.k : conv.c, columns = backward ? conv.c : conv.k;
    const std::int64_t steps = divide_up(channels, std::int64_t{kTapConvStepChannels});
    s.lines = static_cast<int>(divide_up(steps, std::int64_t{kFullSteps}));
    s.last_steps = static_cast<int>(steps - (s.lines - 1) * kFullSteps);
    const int last_bytes = tap_conv_line_bytes(s.last_steps);
    constexpr int kBlockLines = 8;  // of the swizzle
    const int stride_h = static_cast<int>(conv.stride[1]), stride_w = static_cast<int>(conv.stride[2]);
    const int reach = (kTapConvFilter - 1) / stride_h * s.extent[2] + (kTapConvFilter - 1) / stride_w;
    s.slot_lines = static_cast<int>(round_up(rows + reach, std::int64_t{kBlockLines}));
    constexpr int kMostLines = 1024;  // of one copy
    s.slot_bytes = static_cast<int>(round_up(
        std::int64_t{s.slot_lines} * (s.lines > 1 ? tap_conv_line_bytes(kFullSteps) : last_bytes), kSwizzleBlock));
    const std::int64_t weights = std::int64_t{kTaps} * c.tile.n * (s.lines - 1) * tap_conv_line_bytes(kFullSteps) +
                                 round_up(std::int64_t{kTaps} * c.tile.n * last_bytes, kSwizzleBlock);
    // Barriers and where rows go; results on their way (kWeights in tap_conv.hpp).
    const std::int64_t pitch = (c.tile.n / 8 | 1) * 16;
    const std::int64_t fixed = round_up(2048 + c.wave.m * kProductRows * pitch, kSwizzleBlock) + weights;
    const std::int64_t room = halo_weight_block_bytes(c, arch) - fixed, fit = room / c.wave.m / s.slot_bytes;
    constexpr std::int64_t kLeastStages = 2;
    if (fit < kLeastStages || s.slot_lines > kMostLines) {
        refuse(why,
               TILEWISE_TEXT("weights of {} bytes, and stages of {} pixels, {} bytes", weights, s.slot_lines,
                             s.slot_bytes),
               TILEWISE_TEXT("{} stages of at most {} pixels for each of {} workers in {} bytes", kLeastStages,
                             kMostLines, c.wave.m, room));
        return std::nullopt;
    }
    s.stages = static_cast<int>(std::min({fit, std::int64_t{c.stages}, std::int64_t{kTapConvMostStages}}));
    plan.shared_bytes = fixed + std::int64_t{c.wave.m} * s.stages * s.slot_bytes;
    s.column_tiles = static_cast<int>(divide_up(columns, std::int64_t{c.tile.n}));
    s.jobs = static_cast<int>(conv.groups) * s.column_tiles;
    const int most = static_cast<int>(divide_up(s.tiles, c.wave.m));
    const int each = std::clamp(arch.units / s.jobs, 1, most);
    s.parts = each * c.wave.m;
    plan.blocks = s.jobs * each;
    // Weights, and the first pixels; then as many runs as the busiest worker has, while all share the unit.
    constexpr double kStartCycles = 4000, kWeightBytesPerCycle = 16, kLeastTile = 1500;
    const double rounds = double(divide_up(plan.blocks, arch.units)), runs = double(divide_up(s.tiles, s.parts));
    const double each_run = std::max(kLeastTile, tile_cycles(s, c, rows) * c.wave.m);
    plan.cycles = rounds * (kStartCycles + double(weights) / kWeightBytesPerCycle + runs * each_run);
    return plan;
}

}  // namespace tilewise
