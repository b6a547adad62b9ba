// SPDX-License-Identifier: MIT
#include "family/cuda/patch_wgrad_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/rounding.hpp"
#include "config/geometry.hpp"
#include "config/rule_groups.hpp"
#include "family/cuda/patch_tile.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// The product is computed transposed: the tile's rows are (tap, channel), its columns output channels.
// Groups whose columns one wave computes, where groups are merged.
int groups_of_wave(const KernelConfig& c) { return c.num_groups_to_merge > 1 ? c.num_groups_to_merge / c.wave.n : 1; }

// Configs are asked about before they are known to be sane.
bool is_sane(const KernelConfig& c) {
    const int least = std::min({c.tile.m, c.tile.n, c.tile.k, c.wave.m, c.wave.n, c.wave.k, c.num_groups_to_merge,
                                c.stages, c.split_k, c.blocks_per_unit});
    return least >= 1;
}

// One element at a time: at most four channels, which make whole chunks only with those of the next pixel.
bool has_few_channels(const KernelConfig& c) { return c.vector_b == 1; }

bool refuses_channels(const KernelConv& conv, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const std::int64_t chunk = kPatchChunkBytes / bytes_of(c.dtype), groups = groups_of_wave(c);
    if (c.num_groups_to_merge > 1 && groups * c.wave.n != c.num_groups_to_merge) {
        return refuse(out, TILEWISE_TEXT("{} merged groups for {} waves of columns", c.num_groups_to_merge, c.wave.n),
                      TILEWISE_TEXT("a multiple"));
    }
    const bool few = has_few_channels(c);
    if (few && (conv.c > kFewChannels || c.num_groups_to_merge > 1 || conv.dilation[2] != 1 ||
                conv.stride[2] * kFewChannelBytes % kPatchChunkBytes != 0)) {
        return refuse(
            out, TILEWISE_TEXT("c={}, stride {}, dilation {}", conv.c, conv.stride[2], conv.dilation[2]),
            TILEWISE_TEXT("at most {} channels, an even stride and no dilation along the columns", kFewChannels));
    }
    if ((!few && groups * conv.c % chunk != 0) || groups * conv.k % chunk != 0) {
        return refuse(out, TILEWISE_TEXT("{} groups of c={}, k={}", groups, conv.c, conv.k),
                      TILEWISE_TEXT("multiples of {} channels together", chunk));
    }
    const std::int64_t wave_columns = c.tile.n / c.wave.n;
    if (c.num_groups_to_merge > 1 && groups * conv.k > wave_columns) {
        return refuse(out, TILEWISE_TEXT("{} groups of k={} in a wave's {} columns", groups, conv.k, wave_columns),
                      TILEWISE_TEXT("at most these columns"));
    }
    const std::int64_t chunks = c.num_groups_to_merge * std::max(conv.c, conv.k) / chunk;
    return chunks > arch.wave_size &&
           refuse(out, TILEWISE_TEXT("{} chunks of channels", chunks), TILEWISE_TEXT("one for each lane of a warp"));
}

// Extents that cut an axis into 1, 2, 3 ... even pieces, at most `most` long.
struct Piece {
    int size, count;  // of so many, the last perhaps shorter

    double outputs() const { return double(size) * count; }
};
struct Pieces {
    static constexpr int kMost = 12;
    std::array<Piece, kMost> pieces;  // NOLINT: filled as far as it is read
    int piece_count = 0;

    const Piece* begin() const { return pieces.data(); }
    const Piece* end() const { return pieces.data() + piece_count; }
};
Pieces even_pieces(int size, int most) {
    Pieces even;
    for (int piece = std::min(size, most); even.piece_count < Pieces::kMost && piece >= 1; --piece) {
        const int count = patch_divide_up(size, piece);
        piece = patch_divide_up(size, count);  // the least that makes as few of them
        even.pieces[static_cast<std::size_t>(even.piece_count++)] = {piece, count};
    }
    return even;
}

// Pixels of a tile are read eight at a time, each from banks of its own while they are neighbours; where a line of the tile ends
// among them, some share banks. About so many accesses take the place of one.
double bank_turns(int line_pixels, double share) {
    constexpr int kPixels = 8;
    return 1 + share * std::min(1.0, double(kPixels - std::gcd(line_pixels, kPixels)) / line_pixels);
}

constexpr int kStepM = 16, kStepN = 8;

// A block's work on one patch, in cycles of its unit: products, fetching their operands, or copying; and what every patch takes.
double patch_cycles(const PatchWgradArgs& shape, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.patch_wgrad_search;
    const int rows = c.tile.m / kStepM, columns = c.tile.n / kStepN;
    const double steps = shape.steps(), products = double(rows) * columns;
    const double fetches = double(rows) * c.wave.n * bank_turns(shape.y.phase, price.shared_bank_share.value) +
                           double(columns) * c.wave.m / 2;
    const double x_bytes = double(shape.x.pixels()) * std::max(shape.x.chunks * kPatchChunkBytes, kFewChannelBytes);
    const double bytes = x_bytes + double(shape.rows()) * shape.y.chunks * kPatchChunkBytes;
    return std::max({steps * products * price.step_cycles.value, steps * fetches * price.fetch_cycles.value,
                     bytes / price.bytes_per_cycle.value}) +
           price.turn_cycles.value / c.blocks_per_unit;
}

class TileSearch {
public:
    TileSearch(const KernelConv& conv, const KernelConfig& c, const ArchSpec& arch)
        : conv_(conv),
          c_(c),
          arch_(arch),
          axes_(patch_axes(conv, false)),
          bytes_(block_share_bytes(c, arch)),
          chunks_(patch_wgrad_chunks(conv, c)),
          shape_(patch_wgrad_axes(conv)) {
        const auto& price = arch.prices.patch_wgrad_search;
        const int row_steps = c.tile.m / kStepM, column_steps = c.tile.n / kStepN;
        const double rows = row_steps, columns = column_steps, fetches = rows * c.wave.n + columns * c.wave.m / 2;
        position_cycles_ =
            std::max(rows * columns * price.step_cycles.value, fetches * price.fetch_cycles.value) / kPatchWgradDepth;
        turn_cycles_ = price.turn_cycles.value / c.blocks_per_unit;
        x_cycles_ = x_pixel_bytes() / price.bytes_per_cycle.value;
        y_cycles_ = chunks_.y * kPatchChunkBytes / price.bytes_per_cycle.value;
    }
    // False where no tile fits.
    bool run(PatchWgradPlan& plan) {
        const auto size = [&](int d) { return shape_.y_axes[d].outputs; };
        const double images = static_cast<double>(conv_.images), lines = images * size(0) * size(1);
        for (const Piece& w : even_pieces(size(2), c_.tile.k)) {
            if (costs_more(lines * w.outputs())) continue;
            const double planes = images * size(0) * w.outputs();
            for (const Piece& h : even_pieces(size(1), c_.tile.k / w.size)) {
                if (costs_more(planes * h.outputs())) continue;
                for (const Piece& d : even_pieces(size(0), c_.tile.k / (w.size * h.size))) visit(plan, d, h, w);
            }
        }
        return best_ > 0;
    }

private:
    int x_pixel_bytes() const { return std::max(chunks_.x * kPatchChunkBytes, kFewChannelBytes); }
    bool is_beaten(double least) const { return best_ > 0 && least * kSlack >= best_; }
    // Whether tiles that take so many positions together, those beyond the edges included, cost more than the best.
    bool costs_more(double positions) const {
        return is_beaten(positions * (position_cycles_ + turn_cycles_ / c_.tile.k));
    }
    // Pixels of x that an image's patch of these extents has.
    double staged(const Piece& d, const Piece& h, const Piece& w) const {
        const auto along = [&](int axis, int outputs) {
            return double(outputs - 1) * axes_.axis[axis].in_step + axes_.axis[axis].span;
        };
        return along(0, d.size) * along(1, h.size) * along(2, w.size);
    }
    void visit(PatchWgradPlan& plan, const Piece& d, const Piece& h, const Piece& w) {
        constexpr std::int64_t kMostImages = 16;
        const int boxes = d.count * h.count * w.count, positions = d.size * h.size * w.size;
        const std::int64_t most = boxes == 1 ? std::min<std::int64_t>(kMostImages, conv_.images) : 1;
        // No patch of these extents takes less: products, operands, copies; and what every patch does.
        const double box_cycles =
            std::max(positions * position_cycles_, staged(d, h, w) * x_cycles_ + positions * y_cycles_);
        for (int images = 1; images <= most && images * positions <= c_.tile.k; ++images) {
            const double patches = double(ceil_div(conv_.images, std::int64_t{images})) * boxes;
            if (is_beaten(patches * (images * box_cycles + turn_cycles_))) continue;
            const PatchTile tile{images, {d.size, h.size, w.size}};
            try_tile(plan, tile, false);
            constexpr int kPixels = 8;  // that are read together
            if (w.size % kPixels != 0) try_tile(plan, tile, true);
        }
    }
    void try_tile(PatchWgradPlan& plan, const PatchTile& tile, bool whole_lines) {
        if (!is_patch_within(axes_, tile, x_pixel_bytes(), bytes_)) return;
        lay_out_patch_wgrad(shape_, conv_, tile, chunks_.x, chunks_.y, whole_lines);
        const PatchShape& x = shape_.x;
        if (shape_.bytes(c_.stages, c_.tile.m, patch_wgrad_by_lines(c_.num_groups_to_merge, c_.tile.n)) > bytes_ ||
            shape_.rows() > c_.tile.k || !fits_patch_fields(tile.images, x.depth, x.height, x.columns) ||
            shape_.patches() < c_.split_k) {
            return;
        }
        const double cost = shape_.patches() * patch_cycles(shape_, c_, arch_);
        if (best_ > 0 && cost >= best_) return;
        best_ = cost;
        plan.tile = tile, plan.shape = shape_, plan.patches = shape_.patches();
    }

    static constexpr double kSlack = 1 - 1e-9;  // sums of the same terms in another order

    const KernelConv& conv_;
    const KernelConfig& c_;
    const ArchSpec& arch_;
    PatchAxes axes_;
    std::int64_t bytes_;
    PatchWgradChunks chunks_;
    PatchWgradArgs shape_;                                                        // of the tile that is tried
    double position_cycles_ = 0, turn_cycles_ = 0, x_cycles_ = 0, y_cycles_ = 0;  // of a unit, at least
    double best_ = 0;
};

// The parts that take the least time together: blocks run in turns of as many as the device holds, and every part adds a pass
// over the results.
void choose_parts(PatchWgradPlan& plan, double sums, const KernelConfig& c, const ArchSpec& arch) {
    const std::int64_t resident = std::int64_t{arch.units} * c.blocks_per_unit;
    const double cycles = patch_cycles(plan.shape, c, arch) * c.blocks_per_unit;
    // Sums go to the cache and back; a block's start and end take about as long as a few patches.
    const auto& price = arch.prices.patch_wgrad_search;
    constexpr double kSumBytes = 8, kMostParts = 512;
    const double part_cycles = sums * kSumBytes / (price.cache_bytes_per_cycle.value * arch.units);
    // Threads that copy patches do not compute meanwhile: so much longer than counted was seen.
    constexpr double kCopying = 1.3;
    double best = 0;
    const auto most = std::min({double(plan.patches), kMostParts, 2.0 * double(resident) / double(plan.products) + 1});
    // The parts of a cluster are one in the workspace; without one they are all.
    const int together = cluster_parts(c);
    const bool is_fixed = c.split_k > 1 && !(c.cluster_k && c.two_stage);
    // All blocks together take no less than this, in however many parts; each part adds to it.
    constexpr double kSlack = 1 - 1e-9;
    const double least = double(plan.products) * double(plan.patches) * cycles / double(resident);
    std::optional<int> next = is_fixed ? c.split_k : together;
    for (; next && *next <= int(most); next = is_fixed ? std::nullopt : next_parts(plan.patches, *next, together)) {
        const int parts = *next, sets = parts / together;
        if (best > 0 && (least + price.block_cycles.value + sets * part_cycles) * kSlack >= best) break;
        const auto turns = double(ceil_div(plan.products * parts, resident));
        const double block = double(ceil_div(plan.patches, parts)) * cycles + price.block_cycles.value;
        const double time = turns * block + sets * part_cycles;
        if (best > 0 && time >= best) continue;
        best = time, plan.parts = parts, plan.cycles = time * kCopying;
    }
    if (best == 0) plan.parts = c.split_k;  // more than the device holds at a time
}

}  // namespace

std::optional<int> next_parts(std::int64_t steps, int parts, int together) {
    const std::int64_t each = ceil_div(steps, parts);
    if (each <= 1) return std::nullopt;
    return to_int(round_up(ceil_div(steps, each - 1), together));
}

bool refuses_blocks(std::int64_t products, int parts, Rejected* out) {
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    return products > kMost / parts && refuse(out, TILEWISE_TEXT("{} products in {} parts", products, parts),
                                              TILEWISE_TEXT("at most {} blocks", kMost));
}

std::optional<PatchWgradPlan> patch_wgrad_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch,
                                               Rejected* why) {
    if (p.op != c.op || !is_sane(c)) return std::nullopt;
    const KernelConv conv = kernel_conv(p);
    if (refuses_patch_reach(conv, why) || refuses_channels(conv, c, arch, why)) return std::nullopt;
    PatchWgradPlan plan{};
    if (!TileSearch(conv, c, arch).run(plan)) {
        refuse(why, TILEWISE_TEXT("no {} patches or more of at most {} bytes", c.split_k, block_share_bytes(c, arch)),
               TILEWISE_TEXT("fewer channels, a smaller filter or dilation, fewer stages or a smaller split_k"));
        return std::nullopt;
    }
    const std::int64_t taps = product(p.conv.filter);
    plan.products = patch_wgrad_products(conv, c);
    plan.shape.together = cluster_parts(c);
    choose_parts(plan, static_cast<double>(p.conv.k) * double(conv.c * taps), c, arch);
    if (refuses_blocks(plan.products, plan.parts, why)) return std::nullopt;
    return plan;
}

PatchWgradChunks patch_wgrad_chunks(const KernelConv& conv, const KernelConfig& c) {
    const std::int64_t chunk = kPatchChunkBytes / bytes_of(c.dtype), merged = c.num_groups_to_merge;
    const std::int64_t columns = merged > 1 ? merged * conv.k : std::min<std::int64_t>(conv.k, c.tile.n);
    return {has_few_channels(c) ? 0 : to_int(merged * conv.c / chunk), to_int(columns / chunk)};
}

std::int64_t patch_wgrad_products(const KernelConv& conv, const KernelConfig& c) {
    const std::int64_t rows = patch_wgrad_rows(conv, groups_of_wave(c), has_few_channels(c));
    return ceil_div(rows, c.tile.m) * (conv.groups / c.num_groups_to_merge) *
           (c.num_groups_to_merge > 1 ? 1 : ceil_div(conv.k, c.tile.n));
}

PatchWgradPlan patch_wgrad_plan_of(const GpuGrid& grid) {
    const auto& shape = grid.family_args.as<PatchWgradArgs>();
    const PatchTile tile{grid.patch[0], {grid.patch[1], grid.patch[2], grid.patch[3]}};
    return {tile, shape, shape.patches(), grid.blocks / grid.split_k, grid.split_k, 0};
}

}  // namespace tilewise
