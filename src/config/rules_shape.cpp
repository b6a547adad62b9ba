// SPDX-License-Identifier: MIT
// Rules about tile, wave and warp tile: they are listed, they fit into each other, and a block fits the machine.
// The tile is the user's intent and is never corrected; waves and warp tiles are found that cover it.
#include <cstdlib>
#include <limits>

#include "config/geometry.hpp"
#include "config/rule_groups.hpp"

namespace tilewise {
namespace {

bool contains(const std::vector<Shape3>& shapes, const Shape3& shape) {
    for (const Shape3& candidate : shapes) {
        if (candidate == shape) return true;
    }
    return false;
}

std::string list_of(const std::vector<Shape3>& shapes) {
    std::string text;
    for (const Shape3& shape : shapes) text += (text.empty() ? "" : " ") + print_shape(shape);
    return text.empty() ? "nothing: the arch lists none" : text;
}

struct NamedShape {
    std::string_view name;
    Shape3 shape;
};
struct NamedCount {
    std::string_view name;
    int count;
};

bool not_positive(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    for (const NamedShape& s : {NamedShape{"tile", c.tile}, {"wave", c.wave}, {"warp_tile", c.warp_tile}}) {
        if (s.shape.m < 1 || s.shape.n < 1 || s.shape.k < 1) {
            return refuse(out, TILEWISE_TEXT("{} {}", s.name, print_shape(s.shape)),
                          TILEWISE_TEXT("1 or more each way"));
        }
    }
    constexpr int kLargestWave = 1024;  // no machine has more threads in a block
    const Shape3& w = c.wave;
    if (w.m > kLargestWave || w.n > kLargestWave || w.k > kLargestWave) {
        return refuse(out, TILEWISE_TEXT("wave {}", print_shape(w)),
                      TILEWISE_TEXT("at most {} each way", kLargestWave));
    }
    for (const NamedCount& n : {NamedCount{"stages", c.stages},
                                {"split_k", c.split_k},
                                {"blocks_per_unit", c.blocks_per_unit},
                                {"num_groups_to_merge", c.num_groups_to_merge},
                                {"cluster.m", c.cluster.m},
                                {"cluster.n", c.cluster.n}}) {
        if (n.count < 1) return refuse(out, TILEWISE_TEXT("{} {}", n.name, n.count), TILEWISE_TEXT("1 or more"));
    }
    if (c.raster_group < 0) {
        return refuse(out, TILEWISE_TEXT("raster_group {}", c.raster_group), TILEWISE_TEXT("0 or more"));
    }
    return false;
}

void correct_positive(KernelConfig& c, const ArchSpec& arch) {
    for (int* count : {&c.stages, &c.split_k, &c.blocks_per_unit, &c.num_groups_to_merge, &c.cluster.m, &c.cluster.n}) {
        if (*count < 1) *count = 1;
    }
    c.raster_group = std::max(0, c.raster_group);
    const auto listed = [](Shape3& shape, const std::vector<Shape3>* shapes) {
        const bool positive = shape.m > 0 && shape.n > 0 && shape.k > 0;
        if (!positive && shapes && !shapes->empty()) shape = shapes->front();
    };
    listed(c.wave, &arch.waves);
    listed(c.warp_tile, warp_tiles_of(c, arch));
}

bool wave_unlisted(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return !contains(arch.waves, c.wave) &&
           refuse(out, TILEWISE_TEXT("wave {}", print_shape(c.wave)), TILEWISE_TEXT("one of {}", list_of(arch.waves)));
}

bool warp_tile_unlisted(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const std::vector<Shape3>* tiles = warp_tiles_of(c, arch);
    if (!tiles) return false;  // dtype_pair says so
    return !contains(*tiles, c.warp_tile) && refuse(out, TILEWISE_TEXT("warp tile {}", print_shape(c.warp_tile)),
                                                    TILEWISE_TEXT("one of {}", list_of(*tiles)));
}

bool not_multiple(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !tile_is_multiple(c) &&
           refuse(out,
                  TILEWISE_TEXT("tile {} with wave {} x warp tile {}", print_shape(c.tile), print_shape(c.wave),
                                print_shape(c.warp_tile)),
                  TILEWISE_TEXT("a multiple of {}x{}x{}", std::int64_t{c.wave.m} * c.warp_tile.m,
                                std::int64_t{c.wave.n} * c.warp_tile.n, std::int64_t{c.wave.k} * c.warp_tile.k));
}

bool too_many_threads(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return threads_per_block(c, arch) > arch.max_threads &&
           refuse(out, TILEWISE_TEXT("{} threads", threads_per_block(c, arch)),
                  TILEWISE_TEXT("at most {}", arch.max_threads));
}

bool too_many_accumulators(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return arch.accumulators_per_thread > 0 && accumulators_per_thread(c, arch) > arch.accumulators_per_thread &&
           refuse(out, TILEWISE_TEXT("{} accumulators per thread", accumulators_per_thread(c, arch)),
                  TILEWISE_TEXT("at most {}", arch.accumulators_per_thread));
}

int distance(const Shape3& a, const Shape3& b) {
    return std::abs(a.m - b.m) + std::abs(a.n - b.n) + std::abs(a.k - b.k);
}

// The listed wave and warp tile nearest to what was asked that cover the tile and fit the machine. The wave counts
// more: it is what a user tunes by hand.
void correct_wave_and_warp_tile(KernelConfig& c, const ArchSpec& arch) {
    const std::vector<Shape3>* tiles = warp_tiles_of(c, arch);
    if (!tiles) return;
    constexpr int kWaveWeight = 64;
    int best_distance = std::numeric_limits<int>::max();
    KernelConfig best = c;
    for (const Shape3& wave : arch.waves) {
        for (const Shape3& warp_tile : *tiles) {
            KernelConfig candidate = c;
            candidate.wave = wave;
            candidate.warp_tile = warp_tile;
            const int cost = kWaveWeight * distance(wave, c.wave) + distance(warp_tile, c.warp_tile);
            if (cost < best_distance && tile_is_multiple(candidate) && !too_many_threads(candidate, arch, nullptr) &&
                !too_many_accumulators(candidate, arch, nullptr)) {
                best_distance = cost;
                best = candidate;
            }
        }
    }
    c = best;
}

bool below_minimum(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const Shape3& min = arch.limits[static_cast<std::size_t>(operator_of(c))].min;
    const bool below = c.tile.m < min.m || c.tile.n < min.n || c.tile.k < min.k;
    return below && refuse(out, TILEWISE_TEXT("tile {}", print_shape(c.tile)),
                           TILEWISE_TEXT("at least {} for {}", print_shape(min), name_of(operator_of(c))));
}

bool misaligned(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const Shape3& align = arch.limits[static_cast<std::size_t>(operator_of(c))].align;
    const bool off = c.tile.m % align.m != 0 || c.tile.n % align.n != 0 || c.tile.k % align.k != 0;
    return off && refuse(out, TILEWISE_TEXT("tile {}", print_shape(c.tile)),
                         TILEWISE_TEXT("multiples of {} for {}", print_shape(align), name_of(operator_of(c))));
}

constexpr ConfigRule kShapeRules[] = {
    {"positive", "extents and counts are at least 1", not_positive, correct_positive},
    {"wave_listed", "the arch file lists the wave arrangements that kernels exist for", wave_unlisted,
     correct_wave_and_warp_tile},
    {"warp_tile_listed", "a warp tile is a matrix instruction or micro-kernel of the arch for these types",
     warp_tile_unlisted, correct_wave_and_warp_tile},
    {"tile_multiple", "tile = wave x warp tile x a whole number of repeats", not_multiple, correct_wave_and_warp_tile},
    {"threads", "the waves of a block fit its thread limit", too_many_threads, correct_wave_and_warp_tile},
    {"accumulators", "the sums of a tile fit the registers of the waves that hold them", too_many_accumulators,
     correct_wave_and_warp_tile},
    {"tile_minimum", "below the operator's least tile its loads and stores have nothing to share", below_minimum},
    {"tile_alignment", "the operator's tile is made of whole accesses", misaligned},
};

}  // namespace

std::span<const ConfigRule> shape_rules() { return kShapeRules; }

}  // namespace tilewise
