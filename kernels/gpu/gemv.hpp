// SPDX-License-Identifier: MIT
// Products with one to four vectors (m or n is small): every element of the large operand is read once and multiplied where
// it arrives, in registers and in plain arithmetic, so that memory sets the pace. The large operand lies along k. What the config
// says:
//   tile       lines of the large operand (B's columns with swap_ab, else rows of A) x vectors x k of one step
//   wave       m x 1 x k warps: those along k share out the steps of a line and meet in shared memory, in a fixed order
//   warp tile  16 lines x 4 vectors: eight lanes read 128 neighbouring bytes of a line, four lines at a time, four times
//   vectors    the large operand's is 16 bytes, or one element of 16 bits: then lines begin anywhere and are of any length, and an
//              access is two aligned ones (unaligned_chunk.hpp); the other's is 16 bytes along k, or one element: then the vectors
//              lie either way, begin anywhere and come through shared memory (gemv_reads.hpp)
// Blocks share the lines of all batch entries evenly; each takes its own in passes of at most a tile's lines, and what the
// next step multiplies is on its way meanwhile, across passes too.
#pragma once
#include "epilogue.hpp"
#include "gemv_reads.hpp"

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
    using Reads = GemvReads<Config>;
    static constexpr bool kAnywhere = Reads::kAnywhere, kStaged = Reads::kStaged;
    static_assert(Config::swap_ab ? !Config::b_row : Config::a_row, "the large operand lies along k");
    static_assert(Config::warp_m == kWarpLines && Config::warp_n == kMostVectors && Config::warp_k == 1);
    static_assert(Config::tile_m == kTileLines && Config::tile_n == kMostVectors && Config::tile_k == kTileK);
    static_assert(Config::wave_n == 1 && Config::threads == kArchLanes * kWarps);
    // Sums of two passes, which take turns.
    static constexpr int kSumBytes = kWarps * kWarpLines * kMostVectors * int(sizeof(float));
    static constexpr int kWarpK = kLaneWidth * kElements;  // of a step of a warp
    template <int V>
    using Elements = StagedVectors<Vector, V, kWarpK, Reads::kVectorsAlongK>;
    static constexpr int kStageBytes = kStaged ? Elements<kMostVectors>::kBytes : 0;  // of a warp
    static_assert(Config::shared_bytes >= 2 * kSumBytes + kWarps * kStageBytes);

    struct Lines {
        typename Reads::Access line[kRepeats];
    };
    // A block takes this at a time; without lines: nothing.
    struct Pass {
        Index batch, first;
        int lines;
    };
    // Where this lane reads of a pass.
    struct Place {
        int lines_left;    // of the pass, from this lane's first line on
        const char* from;  // this lane's first access
        const char* vector;
        const char* entry;  // the large operand of the batch entry
    };

    const KernelArgs& args;
    const KernelMatrix& large = Config::swap_ab ? args.b : args.a;
    const KernelMatrix& small = Config::swap_ab ? args.a : args.b;
    const Index lines = Config::swap_ab ? args.n : args.m;
    const int vectors = int(Config::swap_ab ? args.m : args.n);
    const Index line_bytes = (Config::swap_ab ? large.col_stride : large.row_stride) * T::bytes;
    // From one vector to the next, or where they lie across k, from k to k.
    const Index vector_bytes =
        (Config::swap_ab == Reads::kVectorsAlongK ? small.row_stride : small.col_stride) * T::bytes;
    const int warp = warp_index();
    const int group = lane_index() / kLaneWidth;
    const int first_k = (warp % Config::wave_k * kLaneWidth + lane_index() % kLaneWidth) * kElements;

    TILEWISE_DEVICE explicit Gemv(const KernelArgs& kernel_args) : args(kernel_args) {}

    // The pass that begins at line `at` of all entries' and ends before `end`; passes of a block are about as long as each other.
    TILEWISE_DEVICE Pass pass_at(Index at, Index end) const {
        Pass pass{};
        if (at >= end) return pass;
        pass.batch = quotient(at, lines), pass.first = at - pass.batch * lines;
        const Index entry_left = lines - pass.first, left = end - at < entry_left ? end - at : entry_left;
        const Index passes = quotient(left + kTileLines - 1, kTileLines);
        pass.lines = int(quotient(left + passes - 1, passes));
        return pass;
    }
    // A pass without lines has the vectors of the first entry.
    TILEWISE_DEVICE Place place_of(const Pass& pass) const {
        Place place;
        const int line = warp / Config::wave_k * kWarpLines + group;
        const char* entry = static_cast<const char*>(large.data) + pass.batch * large.batch_stride * T::bytes;
        place.lines_left = pass.lines - line;
        place.from = entry + (pass.first + line) * line_bytes + Index(first_k) * T::bytes;
        place.vector = static_cast<const char*>(small.data) + pass.batch * small.batch_stride * T::bytes +
                       vector_offset(kStaged ? warp_k() : first_k);
        place.entry = entry;
        return place;
    }
    TILEWISE_DEVICE Index vector_offset(int k) const { return k * (Reads::kVectorsAlongK ? T::bytes : vector_bytes); }
    TILEWISE_DEVICE int warp_k() const { return warp % Config::wave_k * kWarpK; }
    // Numbers that follow from others have no registers of their own.
    TILEWISE_DEVICE int k_left() const { return int(args.k) - first_k; }  // from this lane's first access on
    TILEWISE_DEVICE typename Reads::Inner inner_of(const Place& place) const {
        return Reads::inner_of(place.entry, (lines - 1) * line_bytes + args.k * T::bytes);
    }

    // At k elements from the first access on.
    TILEWISE_DEVICE void load(Lines& lines_held, const Place& place, int k) const {
        const char* from = place.from + Index(k) * T::bytes;
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r, from += kGroups * line_bytes) {
            const bool inside = k < k_left() && r * kGroups < place.lines_left;
            Reads::load(lines_held.line[r], from, inside ? bytes_at(k) : 0, inner_of(place));
        }
    }
    // Bytes of a line that an access finds there, or fewer than 1; whole accesses have all or none.
    TILEWISE_DEVICE int bytes_at(int k) const {
        if constexpr (!kAnywhere) return kChunkBytes;
        const int left = (k_left() - k) * T::bytes;
        return left < kChunkBytes ? left : kChunkBytes;
    }
    template <int V>
    TILEWISE_DEVICE void load_vectors(HeldVectors<kChunkBytes, V>& held, const Place& place, int k) const {
        const char* from = place.vector + Index(k) * T::bytes;
        TILEWISE_UNROLL
        for (int v = 0; v < V; ++v, from += vector_bytes) {
            held.packet[v] = zero_packet<kChunkBytes>();
            if (k < k_left() && v < vectors) held.packet[v] = load_global<kChunkBytes>(from);
        }
    }
    // The same for the step after this one, on the way to shared memory.
    template <int V>
    TILEWISE_DEVICE void fetch_vectors(Elements<V>& elements, const Place& place, int k) const {
        elements.fetch(place.vector + vector_offset(k), vectors, int(args.k) - warp_k() - k, vector_bytes);
    }

    template <int V, int count, class Held>
    static TILEWISE_DEVICE void multiply(Sum (*sums)[V], const Held& held, const Packet<kChunkBytes> (&now)[count]) {
        TILEWISE_UNROLL
        for (int w = 0; w < kChunkBytes / 4; ++w) {
            if constexpr (kSame<Sum, int>) {
                TILEWISE_UNROLL
                for (int r = 0; r < count; ++r) {
                    TILEWISE_UNROLL
                    for (int v = 0; v < V; ++v) {
                        sums[r][v] = add_products(sums[r][v], held.word(v, w), now[r].words[w]);
                    }
                }
            } else {
                constexpr int kEach = 4 / T::bytes;
                float x[V][kEach], y[kEach];
                TILEWISE_UNROLL
                for (int v = 0; v < V; ++v) word_to_floats<Vector>(held.word(v, w), x[v]);
                TILEWISE_UNROLL
                for (int r = 0; r < count; ++r) {
                    word_to_floats<Line>(now[r].words[w], y);
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
        const Place place = place_of(pass_at(share(block_index()), share(block_index() + 1)));
        if (lane_index() % kLaneWidth != 0) return;
        for (int step = 0; step < kSteps; ++step) {
            TILEWISE_UNROLL
            for (int r = 0; r < kRepeats; ++r) {
                const bool inside = step * kTileK < k_left() && r * kGroups < place.lines_left;
                const char* from = place.from + Index(step) * kTileK * T::bytes + r * kGroups * line_bytes;
                if (inside) Reads::prefetch(from, inner_of(place));
            }
        }
    }

    // Lines that begin anywhere: those that have arrived make way for the next step's, `next_k` into `place`, since two sets of
    // raw chunks have no room. Each few wait for their own accesses alone.
    template <int V, class Held>
    TILEWISE_DEVICE void multiply_anywhere(Sum (&sums)[kRepeats][V], const Held& held, Lines& now, int k,
                                           const Place& place, int next_k) const {
        constexpr int kAtOnce = 2;
        const char* from = place.from + Index(next_k) * T::bytes;
        TILEWISE_UNROLL
        for (int first = 0; first < kRepeats; first += kAtOnce) {
            Packet<kChunkBytes> joined[kAtOnce];
            TILEWISE_UNROLL
            for (int i = 0; i < kAtOnce; ++i, from += kGroups * line_bytes) {
                UnalignedChunk& chunk = now.line[first + i];
                chunk.valid = bytes_at(k), joined[i] = chunk.joined();
                const bool inside = (first + i) * kGroups < place.lines_left;
                Reads::load(chunk, from, inside ? bytes_at(next_k) : 0, inner_of(place));
            }
            multiply(&sums[first], held, joined);
        }
    }

    template <int V>
    TILEWISE_DEVICE void run_vectors() const {
        const Index end = share(block_index() + 1);
        Index at = share(block_index());
        SharedAddress region = shared_start(), other = region + kSumBytes;
        const SharedAddress stage = region + 2 * kSumBytes + warp * kStageBytes;
        typename Reads::template Held<Elements<V>, kChunkBytes, V> held;
        if constexpr (kStaged) held.at = stage + lane_index() % kLaneWidth * kChunkBytes;
        Sum sums[kRepeats][V] = {};
        Lines now;
        Elements<V> elements;
        Pass pass = pass_at(at, end);
        Place place = place_of(pass);
        if constexpr (kStaged) fetch_vectors(elements, place, 0);
        load(now, place, 0);
        TILEWISE_ROLLED
        while (pass.lines > 0) {
            at += pass.lines;
            const Pass following = pass_at(at, end);
            TILEWISE_ROLLED
            for (int k = 0; k < args.k; k += kTileK) {
                // The vectors first: an access that hits the cache waits for those before it that do not.
                if constexpr (kStaged) {
                    elements.put(stage);
                } else {
                    load_vectors(held, place, k);
                }
                const bool is_last = k + kTileK >= args.k;
                const int next_k = is_last ? 0 : k + kTileK;
                if (is_last) place = place_of(following);
                if constexpr (kStaged) fetch_vectors(elements, place, next_k);
                if constexpr (kAnywhere) {
                    multiply_anywhere(sums, held, now, k, place, next_k);
                } else {
                    Lines next;
                    load(next, place, next_k);
                    multiply(&sums[0], held, now.line);
                    now = next;
                }
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
