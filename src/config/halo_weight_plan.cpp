// SPDX-License-Identifier: MIT
#include "config/halo_weight_plan.hpp"

#include <algorithm>
#include <array>

#include "base/rounding.hpp"
#include "config/rule_groups.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// Groups whose rows one wave computes, where groups are merged.
int groups_of_wave(const KernelConfig& c) { return c.num_groups_to_merge > 1 ? c.num_groups_to_merge / c.wave.m : 1; }

bool refuses_channels(const KernelConv& conv, const KernelConfig& c, Rejected* out) {
    const std::int64_t chunk = kHaloChunkBytes / bytes_of(c.dtype), groups = groups_of_wave(c);
    if (groups * c.wave.m != c.num_groups_to_merge && c.num_groups_to_merge > 1) {
        return refuse(out, TILEWISE_TEXT("{} merged groups for {} waves of rows", c.num_groups_to_merge, c.wave.m),
                      TILEWISE_TEXT("a multiple"));
    }
    if (groups * conv.c % chunk != 0 || groups * conv.k % chunk != 0 || conv.c % 2 != 0) {
        return refuse(out, TILEWISE_TEXT("{} groups of c={}, k={}", groups, conv.c, conv.k),
                      TILEWISE_TEXT("multiples of {} channels together, an even number each", chunk));
    }
    const std::int64_t wave_rows = c.tile.m / c.wave.m;
    return c.num_groups_to_merge > 1 && groups * conv.k > wave_rows &&
           refuse(out, TILEWISE_TEXT("{} groups of k={} in a wave's {} rows", groups, conv.k, wave_rows),
                  TILEWISE_TEXT("at most these rows"));
}

// Extents that cut an axis into 1, 2, 3 ... even pieces, at most `most` long.
struct Pieces {
    static constexpr int kMost = 12;
    std::array<int, kMost> size{};
    int count = 0;

    const int* begin() const { return size.data(); }
    const int* end() const { return size.data() + count; }
};
Pieces even_pieces(std::int64_t size, int most) {
    Pieces pieces;
    if (most < 1) return pieces;
    int piece = 0;
    for (std::int64_t count = divide_up(size, most); pieces.count < Pieces::kMost && piece != 1; ++count) {
        const auto next = static_cast<int>(divide_up(size, count));
        if (next == piece) continue;
        piece = next;
        pieces.size[static_cast<std::size_t>(pieces.count++)] = piece;
    }
    return pieces;
}

// A block's work on one patch, in cycles of its unit; what the numbers are from is in docs/performance/cuda-conv.md.
double patch_cycles(const HaloWeightShape& shape, const KernelConfig& c) {
    constexpr double kCyclesPerStep = 1.6, kBytesPerCycle = 24, kTurnCycles = 300;
    const double steps = double(shape.steps()) * (c.tile.m / 16) * (c.tile.n / 8);
    const double bytes = double(shape.x.pixels()) * shape.x.chunks * kHaloChunkBytes +
                         double(shape.rows()) * shape.y.chunks * kHaloChunkBytes;
    return std::max(steps * kCyclesPerStep, bytes / kBytesPerCycle) + kTurnCycles / c.blocks_per_unit;
}

class TileSearch {
public:
    TileSearch(const KernelConv& conv, const KernelConfig& c, const ArchSpec& arch)
        : conv_(conv), c_(c), bytes_(halo_weight_block_bytes(c, arch)) {
        const std::int64_t chunk = kHaloChunkBytes / bytes_of(c.dtype), merged = c.num_groups_to_merge;
        x_chunks_ = static_cast<int>(merged * conv.c / chunk);
        const std::int64_t rows = merged > 1 ? merged * conv.k : std::min<std::int64_t>(conv.k, c.tile.m);
        y_chunks_ = static_cast<int>(rows / chunk);
    }
    // False where no tile fits.
    bool run(HaloWeightPlan& plan) {
        for (const int w : even_pieces(conv_.out[2], c_.tile.k)) {
            for (const int h : even_pieces(conv_.out[1], c_.tile.k / w)) {
                for (const int d : even_pieces(conv_.out[0], c_.tile.k / (w * h))) visit(plan, d, h, w);
            }
        }
        return best_ > 0;
    }

private:
    void visit(HaloWeightPlan& plan, int d, int h, int w) {
        const bool whole = d == conv_.out[0] && h == conv_.out[1] && w == conv_.out[2];
        constexpr std::int64_t kMostImages = 16;
        const std::int64_t most = whole ? std::min<std::int64_t>(kMostImages, conv_.images) : 1;
        for (int images = 1; images <= most && images * d * h * w <= c_.tile.k; ++images) {
            const HaloTile tile{images, {d, h, w}};
            const HaloWeightShape shape = halo_weight_shape(conv_, tile, x_chunks_, y_chunks_);
            const HaloPatchShape& x = shape.x;
            if (shape.bytes(c_.stages) > bytes_ || !fits_halo_fields(images, x.depth, x.height, x.columns)) return;
            const std::int64_t patches = divide_up(conv_.images, images) * divide_up(conv_.out[0], d) *
                                         divide_up(conv_.out[1], h) * divide_up(conv_.out[2], w);
            const double cost = static_cast<double>(patches) * patch_cycles(shape, c_);
            if (best_ > 0 && cost >= best_) continue;
            best_ = cost;
            plan.tile = tile, plan.shape = shape, plan.patches = patches;
        }
    }

    const KernelConv& conv_;
    const KernelConfig& c_;
    std::int64_t bytes_;
    int x_chunks_ = 0, y_chunks_ = 0;
    double best_ = 0;
};

// The parts that take the least time together: blocks run in turns of as many as the device holds, and every part adds a pass
// over the results.
void choose_parts(HaloWeightPlan& plan, double sums, const KernelConfig& c, const ArchSpec& arch) {
    const std::int64_t resident = std::int64_t{arch.units} * c.blocks_per_unit;
    const double cycles = patch_cycles(plan.shape, c) * c.blocks_per_unit;
    // Sums go to the cache and back; a block's start and end take about as long as a few patches.
    constexpr double kSumBytes = 8, kCacheBytesPerCycle = 40, kBlockCycles = 3000, kMostParts = 512;
    const double part_cycles = sums * kSumBytes / (kCacheBytesPerCycle * arch.units);
    double best = 0;
    const auto most = std::min({double(plan.patches), kMostParts, 2.0 * double(resident) / double(plan.products) + 1});
    for (int parts = 1; parts <= int(most); ++parts) {
        if (c.split_k > 1 && parts != c.split_k) continue;
        const double turns = double(divide_up(plan.products * parts, resident));
        const double block = double(divide_up(plan.patches, parts)) * cycles + kBlockCycles;
        const double time = turns * block + parts * part_cycles;
        if (best > 0 && time >= best) continue;
        best = time, plan.parts = parts, plan.block_cycles = time;
    }
    if (best == 0) plan.parts = c.split_k;
}

}  // namespace

bool is_halo_weight(const KernelConfig& c) { return c.op == Op::conv_bwd_weight && c.gather == Gather::halo; }

std::int64_t halo_weight_block_bytes(const KernelConfig& c, const ArchSpec& arch) {
    constexpr std::int64_t kReserved = 1024;  // of every block, for the system
    const std::int64_t bytes = (arch.shared_bytes + kReserved) / std::max(1, c.blocks_per_unit) - kReserved;
    return std::max<std::int64_t>(0, bytes / kReserved * kReserved);
}

std::optional<HaloWeightPlan> halo_weight_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch,
                                               Rejected* why) {
    const KernelConv conv = kernel_conv(p);
    if (refuses_channels(conv, c, why)) return std::nullopt;
    HaloWeightPlan plan{};
    if (!TileSearch(conv, c, arch).run(plan)) {
        refuse(why, TILEWISE_TEXT("a patch of more than {} bytes", halo_weight_block_bytes(c, arch)),
               TILEWISE_TEXT("fewer channels, a smaller filter or dilation, or fewer stages"));
        return std::nullopt;
    }
    const std::int64_t taps = product(p.conv.filter), cols = groups_of_wave(c) * conv.c * taps;
    plan.products = divide_up(cols, c.tile.n) * (conv.groups / c.num_groups_to_merge) *
                    (c.num_groups_to_merge > 1 ? 1 : divide_up(conv.k, c.tile.m));
    if (c.split_k > plan.patches) {
        refuse(why, TILEWISE_TEXT("split_k {} of {} patches", c.split_k, plan.patches),
               TILEWISE_TEXT("at most {}", plan.patches));
        return std::nullopt;
    }
    choose_parts(plan, static_cast<double>(p.conv.k) * double(conv.c * taps), c, arch);
    return plan;
}

}  // namespace tilewise
