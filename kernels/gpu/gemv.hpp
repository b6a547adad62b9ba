// SPDX-License-Identifier: MIT
// Products with one to four vectors (m or n is small): every element of the large operand is read once and multiplied where
// it arrives, in registers and in plain arithmetic, so that memory sets the pace. Both operands lie along k. What the config says:
//   tile       lines of the large operand (rows of B's columns with swap_ab, else rows of A) x vectors x k of one step
//   wave       m x 1 x k warps: those along k share out the steps of a line and meet in shared memory, in a fixed order
//   warp tile  16 lines x 4 vectors: eight lanes read 128 neighbouring bytes of a line, four lines at a time, four times
// Blocks share the lines of all batch entries evenly; each takes its own in passes of at most a tile's lines, and what the
// next step multiplies is on its way meanwhile, across passes too.
#pragma once
#include "epilogue.hpp"
#include "packet.hpp"

namespace tilewise::gpu {

template <class Config>
struct Gemv {
    using T = typename Config::A;  // of the same size as B's
    using Line = typename ChooseType<Config::swap_ab, typename Config::B, typename Config::A>::type;
    using Vector = typename ChooseType<Config::swap_ab, typename Config::A, typename Config::B>::type;
    using Sum = SumOf<T>;
    using Out = typename Config::Out;
    static constexpr int kChunkBytes = 16, kElements = kChunkBytes / T::bytes;  // of an access
    static constexpr int kLaneWidth = 8, kGroups = kArchLanes / kLaneWidth, kRepeats = 4,
                         kWarpLines = kGroups * kRepeats;
    static constexpr int kMostVectors = 4;
    static constexpr int kWarps = Config::wave_m * Config::wave_k;
    static constexpr int kTileLines = kWarpLines * Config::wave_m;
    static constexpr int kTileK = kLaneWidth * kElements * Config::wave_k;  // of a step of all warps
    static_assert(T::bytes == Config::B::bytes && kSame<Sum, SumOf<typename Config::B>>,
                  "operands of one size and kind");
    static_assert(Config::a_row && !Config::b_row, "both operands lie along k");
    static_assert(Config::vector_a == kElements && Config::vector_b == kElements, "accesses of 16 bytes");
    static_assert(Config::warp_m == kWarpLines && Config::warp_n == kMostVectors && Config::warp_k == 1);
    static_assert(Config::tile_m == kTileLines && Config::tile_n == kMostVectors && Config::tile_k == kTileK);
    static_assert(Config::wave_n == 1 && Config::threads == kArchLanes * kWarps);
    // Sums of two passes, which take turns.
    static constexpr int kSumBytes = kWarps * kWarpLines * kMostVectors * int(sizeof(float));
    static_assert(Config::shared_bytes >= 2 * kSumBytes);

    struct Lines {
        Packet<kChunkBytes> line[kRepeats];
    };
    // A block takes this at a time; without lines: nothing.
    struct Pass {
        Index batch, first;
        int lines;
        int lines_left;    // of the pass, from this lane's first line on
        const char* from;  // this lane's first access
        const char* vector;
    };

    const KernelArgs& args;
    const KernelMatrix& large = Config::swap_ab ? args.b : args.a;
    const KernelMatrix& small = Config::swap_ab ? args.a : args.b;
    const Index lines = Config::swap_ab ? args.n : args.m;
    const int vectors = int(Config::swap_ab ? args.m : args.n);
    const Index line_bytes = (Config::swap_ab ? large.col_stride : large.row_stride) * T::bytes;
    const Index vector_bytes = (Config::swap_ab ? small.row_stride : small.col_stride) * T::bytes;
    const int warp = warp_index();
    const int group = lane_index() / kLaneWidth;
    const int first_k = (warp % Config::wave_k * kLaneWidth + lane_index() % kLaneWidth) * kElements;
    const int k_left = int(args.k) - first_k;  // from this lane's first access on

    TILEWISE_DEVICE explicit Gemv(const KernelArgs& kernel_args) : args(kernel_args) {}

    // The pass that begins at line `at` of all entries' and ends before `end`; passes of a block are about as long as each other.
    TILEWISE_DEVICE Pass pass_at(Index at, Index end) const {
        Pass pass{};
        if (at >= end) return pass;
        pass.batch = quotient(at, lines), pass.first = at - pass.batch * lines;
        const Index entry_left = lines - pass.first, left = end - at < entry_left ? end - at : entry_left;
        const Index passes = quotient(left + kTileLines - 1, kTileLines);
        pass.lines = int(quotient(left + passes - 1, passes));
        const int line = warp / Config::wave_k * kWarpLines + group;
        pass.lines_left = pass.lines - line;
        pass.from = static_cast<const char*>(large.data) + pass.batch * large.batch_stride * T::bytes +
                    (pass.first + line) * line_bytes + Index(first_k) * T::bytes;
        pass.vector = static_cast<const char*>(small.data) + pass.batch * small.batch_stride * T::bytes +
                      Index(first_k) * T::bytes;
        return pass;
    }

    // At k elements from the first access on.
    TILEWISE_DEVICE void load(Lines& lines_held, const Pass& pass, int k) const {
        const char* from = pass.from + Index(k) * T::bytes;
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r, from += kGroups * line_bytes) {
            lines_held.line[r] = zero_packet<kChunkBytes>();
            if (k < k_left && r * kGroups < pass.lines_left) lines_held.line[r] = load_global<kChunkBytes>(from);
        }
    }
    template <int V>
    TILEWISE_DEVICE void load_vectors(Packet<kChunkBytes> (&held)[V], const Pass& pass, int k) const {
        const char* from = pass.vector + Index(k) * T::bytes;
        TILEWISE_UNROLL
        for (int v = 0; v < V; ++v, from += vector_bytes) {
            held[v] = zero_packet<kChunkBytes>();
            if (k < k_left && v < vectors) held[v] = load_global<kChunkBytes>(from);
        }
    }

    template <int V>
    static TILEWISE_DEVICE void multiply(Sum (&sums)[kRepeats][V], const Packet<kChunkBytes> (&held)[V],
                                         const Lines& now) {
        TILEWISE_UNROLL
        for (int w = 0; w < kChunkBytes / 4; ++w) {
            if constexpr (kSame<Sum, int>) {
                TILEWISE_UNROLL
                for (int r = 0; r < kRepeats; ++r) {
                    TILEWISE_UNROLL
                    for (int v = 0; v < V; ++v) {
                        sums[r][v] = add_products(sums[r][v], held[v].words[w], now.line[r].words[w]);
                    }
                }
            } else {
                constexpr int kEach = 4 / T::bytes;
                float x[V][kEach], y[kEach];
                TILEWISE_UNROLL
                for (int v = 0; v < V; ++v) word_to_floats<Vector>(held[v].words[w], x[v]);
                TILEWISE_UNROLL
                for (int r = 0; r < kRepeats; ++r) {
                    word_to_floats<Line>(now.line[r].words[w], y);
                    TILEWISE_UNROLL
                    for (int i = 0; i < kEach; ++i) {
                        TILEWISE_UNROLL
                        for (int v = 0; v < V; ++v) sums[r][v] += x[v][i] * y[i];
                    }
                }
            }
        }
    }

    static TILEWISE_DEVICE SharedAddress sum_at(SharedAddress region, int own_warp, int line, int v) {
        return region + ((own_warp * kWarpLines + line) * kMostVectors + v) * int(sizeof(float));
    }
    static TILEWISE_DEVICE Sum partner(Sum sum, int mask) {
        return __builtin_bit_cast(Sum, exchange(__builtin_bit_cast(float, sum), mask));
    }
    // The lanes of a line meet, then the warps along k; results leave one by one.
    template <int V>
    TILEWISE_DEVICE void finish_pass(Sum (&sums)[kRepeats][V], const Pass& pass, SharedAddress region) const {
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int v = 0; v < V; ++v) {
                TILEWISE_UNROLL
                for (int mask = kLaneWidth / 2; mask > 0; mask /= 2) sums[r][v] += partner(sums[r][v], mask);
                if (lane_index() % kLaneWidth == 0) {
                    store_shared_float(sum_at(region, warp, r * kGroups + group, v),
                                       __builtin_bit_cast(float, sums[r][v]));
                }
                sums[r][v] = 0;
            }
        }
        sync_block();
        TILEWISE_ROLLED
        for (int e = thread_index(); e < pass.lines * vectors; e += Config::threads) {
            const int line = e / vectors, v = e - line * vectors;
            const int first_warp = line / kWarpLines * Config::wave_k;
            Sum sum = 0;
            for (int w = 0; w < Config::wave_k; ++w) {
                sum += __builtin_bit_cast(Sum, load_shared_float(sum_at(region, first_warp + w, line % kWarpLines, v)));
            }
            const Index row = Config::swap_ab ? Index(v) : pass.first + line;
            const Index col = Config::swap_ab ? pass.first + line : Index(v);
            store<Out>(args, finish<ChainOf<Config>, Out>(args, sum, pass.batch, row, col), pass.batch, row, col);
        }
    }

    // Where the share of a block begins; the next one's is where it ends.
    TILEWISE_DEVICE Index share(Index block) const {
        return quotient(lines * args.batch * block, Index(block_count()));
    }

    // Fetches what the first steps of the first pass will read into the cache, no further: the kernels ahead of this one may not
    // have ended.
    TILEWISE_DEVICE void prefetch_first() const {
        constexpr int kSteps = 3;
        const Pass pass = pass_at(share(block_index()), share(block_index() + 1));
        if (lane_index() % kLaneWidth != 0) return;
        for (int step = 0; step < kSteps; ++step) {
            TILEWISE_UNROLL
            for (int r = 0; r < kRepeats; ++r) {
                const bool inside = step * kTileK < k_left && r * kGroups < pass.lines_left;
                if (inside) prefetch_line(pass.from + Index(step) * kTileK * T::bytes + r * kGroups * line_bytes);
            }
        }
    }

    template <int V>
    TILEWISE_DEVICE void run_vectors() const {
        const Index end = share(block_index() + 1);
        Index at = share(block_index());
        SharedAddress region = shared_start(), other = region + kSumBytes;
        Sum sums[kRepeats][V] = {};
        Lines now, next;
        Pass pass = pass_at(at, end);
        load(now, pass, 0);
        TILEWISE_ROLLED
        while (pass.lines > 0) {
            at += pass.lines;
            const Pass following = pass_at(at, end);
            TILEWISE_ROLLED
            for (int k = 0; k < args.k; k += kTileK) {
                // The vectors first: an access that hits the cache waits for those before it that do not.
                Packet<kChunkBytes> held[V];
                load_vectors(held, pass, k);
                if (k + kTileK < args.k) {
                    load(next, pass, k + kTileK);
                } else {
                    load(next, following, 0);
                }
                multiply(sums, held, now);
                now = next;
            }
            finish_pass(sums, pass, region);
            // Whoever writes there next has passed a barrier after all have read it.
            const SharedAddress turn = region;
            region = other, other = turn;
            pass = following;
        }
    }
};

// The code for as many vectors as there are; that for four also takes three.
template <class Gemm>
TILEWISE_DEVICE void run_gemv(const KernelArgs& args) {
    griddep_launch();
    const Gemm gemm(args);
    gemm.prefetch_first();
    griddep_wait();
    if (gemm.vectors == 1) return gemm.template run_vectors<1>();
    if (gemm.vectors == 2) return gemm.template run_vectors<2>();
    gemm.template run_vectors<Gemm::kMostVectors>();
}

}  // namespace tilewise::gpu

#define TILEWISE_GPU_GEMV(Config)                                                                        \
    extern "C" __global__ void __launch_bounds__(Config::threads, tilewise::gpu::kBlocksPerUnit<Config>) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {                             \
        tilewise::gpu::run_gemv<tilewise::gpu::Gemv<Config>>(args);                                      \
    }
