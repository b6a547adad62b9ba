// SPDX-License-Identifier: MIT
// Products with one to four vectors, like gemv.hpp, where the large operand does not lie along k but along its lines: all
// of them for one k, then for the next. What the config says:
//   tile       lines of the large operand (columns of B with swap_ab, else rows of A) x vectors x k of one step of all warps
//   wave       1 x 1 x k warps, which share out k and meet in shared memory
//   warp tile  16 lines x 4 vectors: sixteen lanes read 256 neighbouring bytes, the other sixteen those of other k
//   vectors    as in gemv.hpp: 16 bytes, or one element of an operand that begins anywhere, and of vectors that lie across k, too
//   cluster_k  the blocks of a cluster share out k, too, and meet in each other's shared memory
// A block has the lines of one tile. All sums meet in a fixed order.
#pragma once
#include "../../gpu/gemv.hpp"
#include "../../gpu/tile_order.hpp"
#include "../hopper.hpp"

namespace tilewise::cuda::gemv_rows {

template <class Config>
struct GemvRows {
    using T = typename Config::A;  // of the same size as B's
    using Line = typename ChooseType<Config::swap_ab, typename Config::B, typename Config::A>::type;
    using Vector = typename ChooseType<Config::swap_ab, typename Config::A, typename Config::B>::type;
    using Sum = SumOf<T>;
    using Out = typename Config::Out;
    static constexpr int kChunkBytes = 16, kElements = kChunkBytes / T::bytes;  // lines of an access
    static constexpr int kLanes = 16, kHalves = 2, kTileLines = kLanes * kElements;
    using Reads = gpu::GemvReads<Config>;
    static constexpr bool kAnywhere = Reads::kAnywhere, kStaged = Reads::kStaged;
    // k that a lane reads of its lines at a time: as many as an access of a vector brings, but no more than registers hold.
    static constexpr int kMostRows = kAnywhere ? 4 : 8, kRows = kElements < kMostRows ? kElements : kMostRows,
                         kVectorBytes = kRows * T::bytes;
    static constexpr int kEach = 4 / T::bytes;  // elements of a word
    static constexpr int kMostVectors = 4, kWarps = Config::wave_k, kSlots = kWarps * kHalves;
    static_assert(T::bytes == Config::B::bytes && kSame<Sum, SumOf<typename Config::B>>,
                  "operands of one size and kind");
    static_assert(Config::swap_ab ? Config::b_row : !Config::a_row, "the large operand lies across k");
    static_assert(Config::warp_m == 16 && Config::warp_n == kMostVectors && Config::warp_k == 1);
    static_assert(Config::tile_m == kTileLines && Config::tile_n == kMostVectors && Config::tile_k == kSlots * kRows);
    static_assert(Config::wave_m == 1 && Config::wave_n == 1 && Config::threads == 32 * kWarps);
    static constexpr int kSumBytes = kMostVectors * kTileLines * int(sizeof(float));  // of a warp
    static_assert(Config::shared_bytes >= kWarps * kSumBytes);
    // The vectors of a warp pass through where its sums will be.
    template <int V>
    using Elements = gpu::StagedVectors<Vector, V, kHalves * kRows, Reads::kVectorsAlongK>;
    static_assert(Elements<kMostVectors>::kBytes <= kSumBytes);

    struct Lines {
        typename Reads::Access row[kRows];
    };

    const KernelArgs& args;
    const KernelMatrix& large = Config::swap_ab ? args.b : args.a;
    const KernelMatrix& small = Config::swap_ab ? args.a : args.b;
    const Index lines = Config::swap_ab ? args.n : args.m;
    const int vectors = int(Config::swap_ab ? args.m : args.n);
    const Index row_bytes = (Config::swap_ab ? large.row_stride : large.col_stride) * T::bytes;
    // From one vector to the next, or where they lie across k, from k to k.
    const Index vector_bytes =
        (Config::swap_ab == Reads::kVectorsAlongK ? small.row_stride : small.col_stride) * T::bytes;
    const int parts = Config::cluster_k ? args.split_k : 1, part = own_part();
    const u32 tile = block_index() / u32(parts), tiles = tile_count(lines, kTileLines);
    const Index batch = tile / tiles, first = Index(tile % tiles) * kTileLines;
    const int warp = warp_index(), lane = lane_index() % kLanes;
    const bool inside = first + lane * kElements < lines;  // whole accesses are, or are not
    // Steps of kRows along k, of this part and from this lane's first on; the last may have fewer where vectors begin anywhere.
    const int k = int(args.k), steps = int((args.k + (kStaged ? kRows - 1 : 0)) / kRows),
              begin = int(Index(steps) * part / parts) + warp * kHalves + lane_index() / kLanes;
    const int end = int(Index(steps) * (part + 1) / parts);
    const char* entry = static_cast<const char*>(large.data) + batch * large.batch_stride * T::bytes;
    const char* from = entry + (first + lane * kElements) * T::bytes;
    const typename Reads::Inner inner = Reads::inner_of(entry, (args.k - 1) * row_bytes + lines * T::bytes);
    const char* vector = static_cast<const char*>(small.data) + batch * small.batch_stride * T::bytes;

    TILEWISE_DEVICE explicit GemvRows(const KernelArgs& kernel_args) : args(kernel_args) {}

    static TILEWISE_DEVICE int own_part() {
        if constexpr (Config::cluster_k) return int(cluster_rank());
        return 0;
    }
    // Bytes of an access that lie inside; where lines begin anywhere, it may be some of them.
    TILEWISE_DEVICE int bytes_inside() const {
        const Index left = lines - first - lane * kElements;
        return kAnywhere && left < kElements ? int(left) * T::bytes : kChunkBytes;
    }
    TILEWISE_DEVICE const char* row_at(int step) const { return from + Index(step) * kRows * row_bytes; }
    TILEWISE_DEVICE void load(Lines& held, int step) const {
        const char* row = row_at(step);
        TILEWISE_UNROLL
        for (int r = 0; r < kRows; ++r, row += row_bytes) load_row(held, r, step, row);
    }
    TILEWISE_DEVICE void load_row(Lines& held, int r, int step, const char* row) const {
        Reads::load(held.row[r], row, has_row(r, step) && inside ? bytes_inside() : 0, inner);
    }
    TILEWISE_DEVICE bool has_row(int r, int step) const { return step < end && (!kStaged || r < k - step * kRows); }
    template <int V>
    TILEWISE_DEVICE void load_vectors(gpu::HeldVectors<kVectorBytes, V>& held, int step) const {
        const char* at = vector + Index(step) * kVectorBytes;
        TILEWISE_UNROLL
        for (int v = 0; v < V; ++v, at += vector_bytes) {
            held.packet[v] = zero_packet<kVectorBytes>();
            if (step < end && v < vectors) held.packet[v] = load_global<kVectorBytes>(at);
        }
    }

    // The same for both halves of the warp, from a step on, on the way to shared memory.
    template <int V>
    TILEWISE_DEVICE void fetch_vectors(Elements<V>& elements, int step) const {
        const int part_k = Index(end) * kRows < k ? end * kRows : k;
        const Index offset = Index(step) * kRows * (Reads::kVectorsAlongK ? T::bytes : vector_bytes);
        elements.fetch(vector + offset, vectors, part_k - step * kRows, vector_bytes);
    }

    // The elements of a word, as what sums are made of.
    template <class Element>
    static TILEWISE_DEVICE void split(u32 word, Sum (&x)[kEach]) {
        if constexpr (kSame<Sum, int>) {
            TILEWISE_UNROLL
            for (int i = 0; i < 4; ++i) x[i] = int(word << (24 - 8 * i)) >> 24;
        } else {
            word_to_floats<Element>(word, x);
        }
    }

    template <int V>
    static TILEWISE_DEVICE void multiply_row(Sum (&sums)[V][kElements], const Sum (&x)[V][kEach], int i,
                                             const Packet<kChunkBytes>& row) {
        TILEWISE_UNROLL
        for (int word = 0; word < kChunkBytes / 4; ++word) {
            Sum y[kEach];
            split<Line>(row.words[word], y);
            TILEWISE_UNROLL
            for (int e = 0; e < kEach; ++e) {
                TILEWISE_UNROLL
                for (int v = 0; v < V; ++v) sums[v][word * kEach + e] += x[v][i] * y[e];
            }
        }
    }
    // One step, and what the next one, `ahead`, reads; a row that has arrived from anywhere makes way for that of the next step.
    template <int V, class Held>
    TILEWISE_DEVICE void multiply(Sum (&sums)[V][kElements], const Held& held, Lines& now, int ahead) const {
        Lines next;
        if constexpr (!kAnywhere) load(next, ahead);
        const char* row = row_at(ahead);
        TILEWISE_UNROLL
        for (int w = 0; w < kVectorBytes / 4; ++w) {
            Sum x[V][kEach];
            TILEWISE_UNROLL
            for (int v = 0; v < V; ++v) split<Vector>(held.word(v, w), x[v]);
            TILEWISE_UNROLL
            for (int i = 0; i < kEach; ++i, row += row_bytes) {
                const int r = w * kEach + i;
                if constexpr (kAnywhere) {
                    const Packet<kChunkBytes> joined = now.row[r].joined_whole();  // sums of lines outside go nowhere
                    load_row(now, r, ahead, row);
                    multiply_row(sums, x, i, joined);
                } else {
                    multiply_row(sums, x, i, now.row[r]);
                }
            }
        }
        if constexpr (!kAnywhere) now = next;
    }

    static TILEWISE_DEVICE SharedAddress sum_at(int own_warp, int v, int line) {
        return shared_start() + own_warp * kSumBytes + (v * kTileLines + line) * int(sizeof(float));
    }
    static TILEWISE_DEVICE Sum sum_of(float word) { return __builtin_bit_cast(Sum, word); }
    static TILEWISE_DEVICE float word_of(Sum sum) { return __builtin_bit_cast(float, sum); }

    // The halves of a warp meet, then the warps.
    template <int V>
    TILEWISE_DEVICE void meet(Sum (&sums)[V][kElements]) const {
        TILEWISE_UNROLL
        for (int v = 0; v < V; ++v) {
            TILEWISE_UNROLL
            for (int e = 0; e < kElements; ++e) {
                sums[v][e] += sum_of(exchange(word_of(sums[v][e]), kLanes));
                if (lane_index() < kLanes)
                    store_shared_float(sum_at(warp, v, lane * kElements + e), word_of(sums[v][e]));
            }
        }
        sync_block();
        TILEWISE_ROLLED
        for (int e = thread_index(); e < vectors * kTileLines; e += Config::threads) {
            const int v = e / kTileLines, line = e % kTileLines;
            Sum sum = 0;
            for (int w = 0; w < kWarps; ++w) sum += sum_of(load_shared_float(sum_at(w, v, line)));
            if constexpr (Config::cluster_k) {
                store_shared_float(sum_at(0, v, line), word_of(sum));
            } else {
                finish_one(sum, v, line);
            }
        }
        if constexpr (Config::cluster_k) meet_blocks();
    }

    // The blocks of a cluster; none may end before the others have read its sums.
    TILEWISE_DEVICE void meet_blocks() const {
        cluster_sync();
        const int all = vectors * kTileLines, last = all * (part + 1) / parts;
        TILEWISE_ROLLED
        for (int e = all * part / parts + thread_index(); e < last; e += Config::threads) {
            const int v = e / kTileLines, line = e % kTileLines;
            Sum sum = 0;
            for (int p = 0; p < parts; ++p) sum += sum_of(load_cluster_float(in_block(sum_at(0, v, line), p)));
            finish_one(sum, v, line);
        }
        cluster_sync();
    }

    TILEWISE_DEVICE void finish_one(Sum sum, int v, int line) const {
        if (first + line >= lines) return;
        const Index row = Config::swap_ab ? Index(v) : first + line, col = Config::swap_ab ? first + line : Index(v);
        store<Out>(args, finish<ChainOf<Config>, Out>(args, sum, batch, row, col), batch, row, col);
    }

    template <int V>
    TILEWISE_DEVICE void run_vectors() const {
        Sum sums[V][kElements] = {};
        Lines now;
        Elements<V> elements;
        // All lanes of a warp as often.
        const int half = lane_index() / kLanes, first_step = begin - half;
        const SharedAddress stage = sum_at(warp, 0, 0);
        typename Reads::template Held<Elements<V>, kVectorBytes, V> held;
        if constexpr (kStaged) held.at = stage + half * kVectorBytes;
        if constexpr (kStaged) fetch_vectors(elements, first_step);
        load(now, begin);
        TILEWISE_ROLLED
        for (int step = first_step; step < end; step += kSlots) {
            if constexpr (kStaged) {
                elements.put(stage);
                fetch_vectors(elements, step + kSlots);
            } else {
                load_vectors(held, step + half);
            }
            multiply(sums, held, now, step + half + kSlots);
        }
        if constexpr (kStaged) sync_warp();  // sums follow where vectors have been read
        meet(sums);
    }

    // Fetches what the first steps will read into the cache, no further: the kernels ahead of this one may not have ended.
    TILEWISE_DEVICE void prefetch_first() const {
        if (!inside || lane * kChunkBytes % 128 != 0) return;
        for (int i = 0; i < 2 * kRows; ++i) {
            const int step = begin + i / kRows * kSlots;
            if (has_row(i % kRows, step)) Reads::prefetch(row_at(step) + Index(i % kRows) * row_bytes, inner);
        }
    }
};

}  // namespace tilewise::cuda::gemv_rows

#define TILEWISE_CUDA_GEMV_ROWS(Config)                                                                  \
    extern "C" __global__ void __launch_bounds__(Config::threads, tilewise::gpu::kBlocksPerUnit<Config>) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {                             \
        tilewise::gpu::run_gemv<tilewise::cuda::gemv_rows::GemvRows<Config>>(args);                      \
    }
