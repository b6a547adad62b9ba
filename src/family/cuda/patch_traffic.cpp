// SPDX-License-Identifier: MIT
#include "family/cuda/patch_traffic.hpp"

#include <algorithm>
#include <vector>

#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kLineBytes = 128;

// When blocks come to a tile of a slice, in tiles from the start. Blocks have `units` tiles each in a row, the first `longer` of them
// one more.
class Visits {
public:
    Visits(const PatchConvPlan& choice, double kept_share)
        : tiles_(choice.tiles),
          units_(choice.tiles * choice.slices / choice.blocks),
          longer_(choice.tiles * choice.slices % choice.blocks),
          kept_(std::max(1.0, kept_share * static_cast<double>(units_ + (longer_ > 0 ? 1 : 0)))) {}

    // How often the slices from first to last, both included, fetch a line they share, on average: once more wherever the visit
    // before is too long ago.
    double fetches(std::int64_t first, std::int64_t last) const {
        if (first == last) return 1;
        constexpr int kSamples = 8;  // tiles looked at
        std::vector<std::int64_t> times(static_cast<std::size_t>(last - first + 1));
        double sum = 0;
        for (int i = 0; i < kSamples; ++i) {
            const std::int64_t tile = tiles_ * (2 * i + 1) / (2 * kSamples);
            for (std::int64_t slice = first; slice <= last; ++slice) {
                times[static_cast<std::size_t>(slice - first)] = time_of(slice * tiles_ + tile);
            }
            std::sort(times.begin(), times.end());
            for (std::size_t t = 1; t < times.size(); ++t) {
                sum += static_cast<double>(times[t] - times[t - 1]) > kept_ ? 1 : 0;
            }
        }
        return 1 + sum / kSamples;
    }

private:
    std::int64_t time_of(std::int64_t unit) const {
        const std::int64_t in_longer = longer_ * (units_ + 1);
        return unit < in_longer ? unit % (units_ + 1) : (unit - in_longer) % units_;
    }

    std::int64_t tiles_, units_, longer_;
    double kept_;  // a line stays in the cache for so many tiles
};

// The channels of a tensor's pixel, in bytes: all, those of a slice's groups, of a product of these, and of a column tile.
struct PixelPieces {
    std::int64_t pixel, slice, product, columns, column_tiles;
    bool split;  // column tiles have columns of their own; else each needs all

    std::int64_t first_slice(std::int64_t byte) const {
        return byte / slice * column_tiles + (split ? byte % slice % product / columns : 0);
    }
    std::int64_t last_slice(std::int64_t byte) const {
        return split ? first_slice(byte) : byte / slice * column_tiles + column_tiles - 1;
    }
};

// The bytes of a pixel. A part of a line that is written when the rest of it has left the cache is read back first.
double pixel_bytes(const PixelPieces& of, const Visits& visits) {
    double bytes = 0;
    for (std::int64_t at = 0; at < of.pixel; at += kLineBytes) {
        const std::int64_t end = std::min(of.pixel, at + kLineBytes);
        const auto [first, last] = std::minmax({of.first_slice(at), of.last_slice(end - 1)});
        const double fetches = visits.fetches(first, last);
        bytes += static_cast<double>(end - at) * (of.split ? 2 * fetches - 1 : fetches);
    }
    return bytes;
}

}  // namespace

double patch_traffic_bytes(const Problem& p, const KernelConfig& c, const PatchConvPlan& choice, const ArchSpec& arch) {
    // A line stays for about a quarter of the cache: both halves of an H200's keep what their own units use, and what is written
    // passes through it too.
    const auto share = double(arch.prices.patch_conv.kept_cache_share);
    const double least = bytes_moved(p), kept = share * static_cast<double>(arch.cache_bytes);
    if (kept >= least || choice.slices == 1 || choice.interleaved > 1) return least;
    const Visits visits(choice, kept / least);
    const KernelConv conv = kernel_conv(p);
    const PatchConvLayout& plan = choice.plan;
    const bool backward = c.op == Op::conv_bwd_data;
    const std::int64_t in = (backward ? conv.k : conv.c) * bytes_of(c.dtype),
                       out = (backward ? conv.c : conv.k) * bytes_of(c.dtype_out);
    const std::int64_t merge = c.num_groups_to_merge, columns = c.tile.n / c.wave.n * bytes_of(c.dtype_out);
    const PixelPieces read{conv.groups * in, merge * in, plan.product_groups * in, in, plan.column_tiles, false};
    const PixelPieces written{conv.groups * out, merge * out,       plan.product_groups * out,
                              columns,           plan.column_tiles, true};
    const double inputs = static_cast<double>(conv.images * product(p.conv.in)),
                 outputs = static_cast<double>(conv.images * product(output_size(p.conv)));
    return (backward ? outputs : inputs) * pixel_bytes(read, visits) +
           (backward ? inputs : outputs) * pixel_bytes(written, visits);
}

}  // namespace tilewise
