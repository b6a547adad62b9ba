// SPDX-License-Identifier: MIT
#include "family/cpu/micro_kernel_work.hpp"

#include <algorithm>

#include "family/work_problem.hpp"

namespace tilewise {
namespace {

// The next smaller piece, as the kernels cut what a whole micro-kernel does not cover (kernels/cpu/vector_core.hpp).
std::int64_t smaller_piece(std::int64_t size) {
    std::int64_t power = 1;
    while (power * 2 < size) power *= 2;
    return power;
}

// The length of k as the micro-kernels see it.
struct Depth {
    double units;   // of warp tile's depth
    double blocks;  // of the tile's depth: after each, sums are stored
};

void add_pieces(MicroKernelWork& work, std::int64_t row_count, std::int64_t vector_count, double times, const Depth& k,
                bool whole) {
    constexpr double kFewestSums = 4;
    const auto rows = static_cast<double>(row_count), vectors = static_cast<double>(vector_count);
    const double products = std::max(rows * vectors, kFewestSums) * k.units * times;
    work.products += products;
    work.vector_reads += products / rows;
    work.row_reads += products / vectors;
    work.calls += k.blocks * times;
    (whole ? work.stores : work.detours) += rows * vectors * k.blocks * times;
}

// All columns under `rows` rows. Commonly the last panel is narrower only under whole micro-kernels.
void add_rows(MicroKernelWork& work, std::int64_t rows, const ProductShape& shape, double times, const Shape3& tile,
              std::int64_t lanes, const Depth& k) {
    const std::int64_t n = shape.n, vectors = std::max<std::int64_t>(tile.n / lanes, 1), left = n % tile.n;
    std::int64_t last = shape.any_width ? (left + lanes - 1) / lanes : vectors;
    while (rows == tile.m && last > 1 && left <= smaller_piece(last) * lanes) last = smaller_piece(last);
    const std::int64_t tiles = n / tile.n;
    if (tiles > 0) add_pieces(work, rows, vectors, static_cast<double>(tiles) * times, k, true);
    if (left > 0) add_pieces(work, rows, last, times, k, false);
}

}  // namespace

std::int64_t vector_lanes(const ArchSpec& arch) { return std::max(1, arch.load_bytes / 4); }

namespace {

// The chip's peak is that of the deepest warp tile of a type. Shallower ones multiply in fp32, or a few values at a time.
template <class N>
N micro_kernel_tflops(const KernelConfig& c, const ArchSpec& arch) {
    const N peak = peak_tflops<N>(arch, c.dtype);
    int deepest = c.warp_tile.k;
    if (const WarpTiles* listed = arch.find_warp_tiles({c.dtype, c.dtype_b})) {
        for (const Shape3& tile : listed->tiles) deepest = std::max(deepest, tile.k);
    }
    return c.warp_tile.k == deepest ? peak : shortest({peak, N(c.warp_tile.k) * peak_tflops<N>(arch, DType::fp32)});
}

}  // namespace

template <class N>
N step_us(const KernelConfig& c, const ArchSpec& arch) {
    return named("step", counted<N>("step flops", static_cast<double>(2 * vector_lanes(arch) * c.warp_tile.k)) /
                             (micro_kernel_tflops<N>(c, arch) * 1e6));
}
template double step_us<double>(const KernelConfig&, const ArchSpec&);
template Term step_us<Term>(const KernelConfig&, const ArchSpec&);
template Noted step_us<Noted>(const KernelConfig&, const ArchSpec&);

MicroKernelWork& MicroKernelWork::operator+=(const MicroKernelWork& more) {
    products += more.products;
    vector_reads += more.vector_reads;
    row_reads += more.row_reads;
    calls += more.calls;
    stores += more.stores;
    detours += more.detours;
    return *this;
}

MicroKernelWork product_work(const ProductShape& shape, double times, const KernelConfig& c, std::int64_t lanes) {
    const Shape3& tile = c.warp_tile;
    const auto& [m, n, k, block_k, any_width] = shape;
    const Depth depth = {blocks_of(k, tile.k), blocks_of(k, block_k)};
    MicroKernelWork work;
    if (tile.k >= kAmxDepth) {
        const double vectors = static_cast<double>(tile.m * tile.n) / static_cast<double>(lanes);
        work.products = blocks_of(m, tile.m) * blocks_of(n, tile.n) * vectors * depth.units * times;
        return work;
    }
    const std::int64_t tiles = m / tile.m;
    if (tiles > 0) add_rows(work, tile.m, shape, static_cast<double>(tiles) * times, tile, lanes, depth);
    std::int64_t piece = tile.m;
    for (std::int64_t left = m % tile.m; left > 0; left -= piece) {
        while (piece > left) piece = smaller_piece(piece);
        add_rows(work, piece, shape, times, tile, lanes, depth);
    }
    return work;
}

}  // namespace tilewise
