// SPDX-License-Identifier: MIT
#include "family/cuda/shifted_wgrad_plan.hpp"

#include <algorithm>
#include <limits>

#include "base/rounding.hpp"
#include "base/work_parts.hpp"
#include "config/geometry.hpp"
#include "config/rule_groups.hpp"
#include "family/cuda/patch_wgrad_plan.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kElementBytes = 2, kStepPositions = 16, kProductRows = 64;
constexpr int kSideBySide = 3;  // taps of a product whose rows are k
constexpr int kStripRows = 16;  // of a tap, on mma.sync

bool has_sane_tiles(const KernelConfig& c) {
    return std::min({c.tile.m, c.tile.n, c.tile.k, c.wave.m, c.split_k, c.blocks_per_unit}) >= 1;
}

// The copy engine's bounding box may be larger or smaller than an image by so much, for each number of dimensions; and its steps.
bool refuses_reach(const Problem& p, const KernelConv& conv, Rejected* out) {
    constexpr std::int64_t kMostStep = 8;
    const std::int64_t most = p.conv.in.rank == 1 ? 32767 : p.conv.in.rank == 2 ? 127 : 15;
    for (int d = 0; d < kMaxKernelDims; ++d) {
        const std::int64_t walked = (shifted_wgrad_extent(conv, d) - 1) * conv.stride[d],
                           upper = walked - conv.in[d] + 1;
        const std::int64_t reach = (conv.filter[d] - 1) * conv.dilation[d];
        if (conv.stride[d] > kMostStep || reach > most || conv.pad[d] > most || upper - conv.pad[d] > most ||
            upper - conv.pad[d] < -most) {
            return refuse(out,
                          TILEWISE_TEXT("a filter of {}, stride {}, dilation {}, pad {}", conv.filter[d],
                                        conv.stride[d], conv.dilation[d], conv.pad[d]),
                          TILEWISE_TEXT("a reach of at most {} and a stride of at most {}", most, kMostStep));
        }
    }
    return false;
}

// Two taps share a product where lines are short, and the distance from one to the other cannot be negative. Planes of an image that is
// smaller than the filter follow each other so closely that it would be.
bool has_pairs_in_order(const KernelConv& conv, const ShiftedWgradArgs& s, int block_taps) {
    const int taps = tap_count(conv);
    for (int first = 0; first < taps; first += block_taps) {
        const int end = std::min(taps, first + block_taps);
        for (int tap = first; tap + 1 < end; tap += 2) {
            if (tap_place(conv, s, tap + 1).shift < tap_place(conv, s, tap).shift) return false;
        }
    }
    return true;
}

// The ring of stages, and what it takes of x.
bool refuses_stages(ShiftedWgradArgs& s, const KernelConv& conv, const KernelConfig& c, const ArchSpec& arch,
                    Rejected* out) {
    const int taps = tap_count(conv), block_taps = s.block_taps;
    std::int64_t reach = 0;
    for (int first = 0; first < taps; first += block_taps) {
        const int last = std::min(taps, first + block_taps) - 1;
        for (int tap = first; tap <= last; ++tap) {
            reach = std::max<std::int64_t>(reach, tap_place(conv, s, tap).shift - tap_place(conv, s, first).shift);
        }
    }
    // Large copies are few, small ones fetch little that is not needed; one costs about as much as so many lines.
    constexpr std::int64_t kCopyLines = 8;
    std::int64_t best = 0;
    // Or one that is as large as need be, in whole blocks of the swizzle.
    constexpr std::int64_t kBlockLines = 8, kMostLines = 256;
    const int y_lines = shifted_wgrad_y_lines(shifted_wgrad_columns(c));
    const int whole = to_int(std::min(kMostLines, round_up(c.tile.k + reach, kBlockLines)));
    for (const int box : {32, 64, 128, whole}) {
        const std::int64_t boxes = ceil_div(c.tile.k + reach, std::int64_t{box}), cost = boxes * (box + kCopyLines);
        if (y_lines + s.x_walks() * boxes > kShiftedWgradMostCopies) continue;
        if (best == 0 || cost < best) best = cost, s.box_lines = box, s.x_boxes = to_int(boxes);
    }
    if (best == 0) {
        return refuse(
            out, TILEWISE_TEXT("{} walks of {} pixels for each stage", s.x_walks(), c.tile.k + reach),
            TILEWISE_TEXT("at most {} copies: a smaller stride, filter or dilation", kShiftedWgradMostCopies));
    }
    const std::int64_t stage = shifted_wgrad_y_bytes(c.tile.k, shifted_wgrad_columns(c)) + s.x_bytes();
    constexpr std::int64_t kTables = 4096, kLeastStages = 2;
    const std::int64_t room = block_share_bytes(c, arch) - kTables, fit = room / stage;
    if (fit < kLeastStages) {
        return refuse(out, TILEWISE_TEXT("{} stages of {} bytes", fit, stage),
                      TILEWISE_TEXT("{} in {} bytes: a smaller image, filter or dilation", kLeastStages, room));
    }
    s.stages = to_int(std::min({fit, std::int64_t{c.stages}, std::int64_t{kShiftedWgradMostStages}}));
    return false;
}

// A block's work on one run of positions, in cycles of its unit.
template <class N>
N run_cycles(const ShiftedWgradArgs& shape, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.shifted_wgrad;
    const double results = double(c.tile.m) * c.tile.n, steps = double(c.tile.k) / kStepPositions;
    if (c.warp_tile.m == kStripRows) {
        constexpr double kStepColumns = 8;
        return term<N>("products", results / (kStripRows * kStepColumns) * steps, price.strip_product_cycles) +
               N(price.turn_cycles);
    }
    // A product of 64 rows takes half a cycle for each column; shared memory gives so many bytes a cycle for its operands, and takes a
    // little longer for each line that is copied there.
    const double columns = c.warp_tile.n, products = results / (kProductRows * columns) * steps;
    const double operands = products * (kProductRows + columns) * kStepPositions * double(kElementBytes);
    // Lines are counted, however long they are.
    const double lines = double(c.tile.k) * shifted_wgrad_y_lines(shifted_wgrad_columns(c)) +
                         double(shape.x_walks()) * shape.x_boxes * shape.box_lines;
    return longest({counted<N>("product cycles", products * columns / 2),
                    counted<N>("operand bytes", operands) / N(price.shared_bytes_per_cycle) +
                        term<N>("lines", lines, price.line_cycles)}) +
           N(price.turn_cycles);
}

// Blocks run in turns of as many as the device holds, and every part adds a pass over the results.
template <class N>
class PartsWork {
public:
    PartsWork(const ShiftedWgradPlan& plan, double sums, const KernelConfig& c, const ArchSpec& arch)
        : plan_(plan),
          two_stage_(c.two_stage),
          together_(cluster_parts(c)),
          block_(block_cycles(c, arch)),
          step_(step_cycles(plan, c, arch)),
          part_(part_cycles(sums, arch)) {
        // A cluster stays in one of the chip's groups of units, which are no multiples of large ones: 15 of 8 blocks were seen to fit 132.
        constexpr int kLargeCluster = 4;
        const int units = together_ >= kLargeCluster ? arch.units * 10 / 11 : arch.units;
        resident_ = std::max(1, units * c.blocks_per_unit / together_ * together_);
    }

    std::int64_t resident() const { return resident_; }
    // However many parts there are: blocks have all runs between them, and one begins and ends.
    N least() const {
        if (!two_stage_) return cycles(together_);
        const double runs = double(plan_.products) * plan_.shape.steps / double(resident_);
        return counted<N>("runs", runs) * step_ + block_ + part_;
    }
    N cycles(int parts) const {
        const auto turns = double(ceil_div(plan_.products * parts, resident_));
        const N blocks = counted<N>("turns", turns) *
                         (counted<N>("runs", double(ceil_div(plan_.shape.steps, parts))) * step_ + block_);
        const int sets = parts / together_;
        return two_stage_ ? blocks + counted<N>("sets", sets) * part_ : blocks;
    }

private:
    // A block's start, and its results' way through shared memory to the workspace.
    static N block_cycles(const KernelConfig& c, const ArchSpec& arch) {
        const auto& price = arch.prices.shifted_wgrad;
        return N(price.start_cycles) + term<N>("results", double(c.tile.m) * c.tile.n, price.result_cycles);
    }
    // With two stages the products of one wait for the copies of the other.
    static N step_cycles(const ShiftedWgradPlan& plan, const KernelConfig& c, const ArchSpec& arch) {
        const N step = run_cycles<N>(plan.shape, c, arch) * c.blocks_per_unit;
        return named("run", plan.shape.stages < 3 ? step * N(arch.prices.shifted_wgrad.two_stages_share) : step);
    }
    static N part_cycles(double sums, const ArchSpec& arch) {
        constexpr double kSumBytes = 8;
        return named("sums", N(sums * kSumBytes / arch.units) / N(arch.prices.shifted_wgrad.cache_bytes_per_cycle));
    }

    const ShiftedWgradPlan& plan_;
    bool two_stage_;
    int together_;
    std::int64_t resident_ = 1;
    N block_, step_, part_;
};

void choose_parts(ShiftedWgradPlan& plan, double sums, const KernelConfig& c, const ArchSpec& arch) {
    const PartsWork<double> work(plan, sums, c, arch);
    const int together = cluster_parts(c);
    double best = 0;
    const auto most = std::max<std::int64_t>(together, 2 * work.resident() / plan.products + together);
    std::optional<int> next = together;
    for (; next && *next <= std::min<std::int64_t>(most, plan.shape.steps);
         next = c.two_stage ? next_parts(plan.shape.steps, *next, together) : std::nullopt) {
        const double time = work.cycles(*next);
        if (best == 0 || time < best) best = time, plan.parts = *next, plan.cycles = time;
    }
}

// Results of a problem's reduction.
double sums_of(const Problem& p, const KernelConv& conv) {
    return static_cast<double>(p.conv.k) * double(conv.c * tap_count(conv));
}

// A product of several taps side by side needs them evenly apart: of one line.
bool refuses_taps(const KernelConv& conv, const KernelConfig& c, Rejected* out) {
    return !c.swap_ab && (conv.filter[2] % kSideBySide != 0 || shifted_wgrad_walks(conv, 2) > 1) &&
           refuse(out, TILEWISE_TEXT("a filter {} wide, stride {}", conv.filter[2], conv.stride[2]),
                  TILEWISE_TEXT("a multiple of {}, stride 1", kSideBySide));
}

constexpr int kLine = 64, kShortLine = 32;

// Taps of a block whose lines of x hold so many channels.
int taps_of_block(const KernelConv& conv, const KernelConfig& c, int line) {
    const bool strips = c.warp_tile.m == kStripRows;
    return tap_count_of_block(conv, shifted_wgrad_rows(c) / (strips ? kStripRows : line));
}
// Blocks of each part.
std::int64_t product_count(const KernelConv& conv, const KernelConfig& c, int line, int block_taps) {
    const std::int64_t merged = c.num_groups_to_merge;
    return ceil_div(tap_count(conv), block_taps) *
           (merged > 1 ? conv.groups / merged
                       : ceil_div(conv.c, line) * ceil_div(conv.k, shifted_wgrad_columns(c)) * conv.groups);
}

}  // namespace

int shifted_wgrad_rows(const KernelConfig& c) { return c.swap_ab ? c.tile.m : c.tile.n; }
int shifted_wgrad_columns(const KernelConfig& c) { return c.swap_ab ? c.tile.n : c.tile.m; }

std::optional<ShiftedWgradPlan> shifted_wgrad_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch,
                                                   Rejected* why) {
    if (p.op != c.op || !has_sane_tiles(c)) return std::nullopt;
    const KernelConv conv = kernel_conv(p);
    if (refuses_reach(p, conv, why)) return std::nullopt;
    if (refuses_taps(conv, c, why)) return std::nullopt;
    ShiftedWgradPlan plan{};
    ShiftedWgradArgs& shape = plan.shape;
    std::int64_t positions = conv.images;
    for (int d = 0; d < kMaxKernelDims; ++d) {
        shape.extent[d] = shifted_wgrad_extent(conv, d);
        shape.walks[d] = shifted_wgrad_walks(conv, d);
        positions *= shape.extent[d];
    }
    constexpr std::int64_t kMostPositions = std::int64_t{1} << 28;  // some times as many are still counted
    if (positions >= kMostPositions) {
        refuse(why, TILEWISE_TEXT("{} positions", positions), TILEWISE_TEXT("fewer than {}", kMostPositions));
        return std::nullopt;
    }
    // Two taps of a product of short lines must follow each other in shared memory: not so with a stride.
    const std::int64_t merged = c.num_groups_to_merge, channels = merged * conv.c;
    const bool strips = c.warp_tile.m == kStripRows;
    if (strips && (channels != kLine || merged * conv.k != kLine)) {
        refuse(why, TILEWISE_TEXT("{} groups of c={}, k={}", merged, conv.c, conv.k),
               TILEWISE_TEXT("{} channels together", kLine));
        return std::nullopt;
    }
    const std::int64_t taps = tap_count(conv);
    const bool holds_short =
        taps * kShortLine <= c.tile.m && taps * kLine > c.tile.m;  // then x is fetched for all taps at once
    const bool is_short = (channels <= kShortLine || holds_short) && shape.x_walks() == 1 &&
                          has_pairs_in_order(conv, shape, tap_count_of_block(conv, shifted_wgrad_rows(c) / kShortLine));
    shape.line = strips ? kLine : !c.swap_ab ? c.warp_tile.n / kSideBySide : is_short ? kShortLine : kLine;
    if (merged > 1 &&
        (channels > shape.line || merged * conv.k > shifted_wgrad_columns(c) || conv.groups % merged != 0)) {
        refuse(why, TILEWISE_TEXT("{} of {} groups of c={}, k={}", merged, conv.groups, conv.c, conv.k),
               TILEWISE_TEXT("at most {} and {} channels together", shape.line, shifted_wgrad_columns(c)));
        return std::nullopt;
    }
    shape.block_taps = taps_of_block(conv, c, shape.line);
    shape.steps = to_int(ceil_div(positions, std::int64_t{c.tile.k}));
    shape.together = cluster_parts(c);
    if (refuses_stages(shape, conv, c, arch, why)) return std::nullopt;
    if (shape.steps < c.split_k) {
        refuse(why, TILEWISE_TEXT("split_k {} of {} steps", c.split_k, shape.steps), TILEWISE_TEXT("at most these"));
        return std::nullopt;
    }
    plan.products = product_count(conv, c, shape.line, shape.block_taps);
    choose_parts(plan, sums_of(p, conv), c, arch);
    if (refuses_blocks(plan.products, plan.parts, why)) return std::nullopt;
    return plan;
}

double shifted_wgrad_least_cycles(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const KernelConv conv = kernel_conv(p);
    if (refuses_reach(p, conv, nullptr) || refuses_taps(conv, c, nullptr))
        return std::numeric_limits<double>::infinity();
    auto positions = static_cast<double>(conv.images);
    for (int d = 0; d < kMaxKernelDims; ++d) positions *= shifted_wgrad_extent(conv, d);
    // Lines of x are copied as well, and may be short; with few stages a run takes longer.
    ShiftedWgradPlan plan{};
    plan.shape.steps = to_int(static_cast<std::int64_t>(std::min(positions / c.tile.k, 1e9)));
    plan.shape.stages = kShiftedWgradMostStages;
    const int line = c.swap_ab ? kLine : c.warp_tile.n / kSideBySide;
    plan.products = product_count(conv, c, line, taps_of_block(conv, c, line));
    if (c.swap_ab && c.warp_tile.m != kStripRows) {
        const std::int64_t of_short = product_count(conv, c, kShortLine, taps_of_block(conv, c, kShortLine));
        plan.products = std::min(plan.products, of_short);
    }
    return PartsWork<double>(plan, sums_of(p, conv), c, arch).least();
}

template <class N>
N shifted_wgrad_cycles(const ShiftedWgradPlan& plan, const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    return PartsWork<N>(plan, sums_of(p, kernel_conv(p)), c, arch).cycles(plan.parts);
}
template double shifted_wgrad_cycles<double>(const ShiftedWgradPlan&, const Problem&, const KernelConfig&,
                                             const ArchSpec&);
template Term shifted_wgrad_cycles<Term>(const ShiftedWgradPlan&, const Problem&, const KernelConfig&, const ArchSpec&);
template Noted shifted_wgrad_cycles<Noted>(const ShiftedWgradPlan&, const Problem&, const KernelConfig&,
                                           const ArchSpec&);

ShiftedWgradPlan shifted_wgrad_plan_of(const GpuGrid& grid) {
    return {grid.family_args.as<ShiftedWgradArgs>(), grid.blocks / grid.split_k, grid.split_k, 0};
}

}  // namespace tilewise
