// SPDX-License-Identifier: MIT
// The way of a warpgroup's sums from registers to C: by tensor copies where results are nothing but alpha times the sums and
// C's rows begin on 16 bytes; in pairs of 16-bit results where they do not; element by element, with the whole epilogue or as
// partial sums of split_k, otherwise. All through the warpgroup's two buffers in shared memory, which
// nobody else uses, so that the other warps go on with the next tile.
#pragma once
#include "../../gpu/epilogue.hpp"
#include "wgmma_shape.hpp"

namespace tilewise::cuda::wgmma_gemm {

// Where in C a tile's results belong: in a matrix, right there. Told of every tile before its results come.
struct MatrixPlaces {
    static constexpr bool kMoves = false;  // whether there are rows or columns that belong elsewhere

    explicit TILEWISE_DEVICE MatrixPlaces(const KernelArgs&) {}
    TILEWISE_DEVICE void begin(const TilePlace&) {}

    // Whether boxes of 64 rows of a tile can be copied to where they belong; and where that is.
    TILEWISE_DEVICE bool in_boxes() const { return true; }
    struct Box {
        int row, batch;
    };
    TILEWISE_DEVICE Box box(const TilePlace& tile, int row) const { return {row, static_cast<int>(tile.batch)}; }
    TILEWISE_DEVICE void store(const TensorMap& map, unsigned from, int column, const Box& box) const {
        store_box(map, from, column, box.row, box.batch);
    }
};

template <class Config, class Places = MatrixPlaces>
struct WgmmaStore {
    using Shape = WgmmaShape<Config>;
    using Out = typename Config::Out;
    using Sum = typename Shape::Sum;
    using Sums = typename Shape::Sums;
    using Value = ValueOf<Sum, Out>;

    const KernelArgs& args;
    const TensorMap& map_c;
    unsigned shared;  // its address
    Places places;

    // Results that are nothing but alpha times the sums: through shared memory, by tensor copies.
    TILEWISE_DEVICE void store_boxes(const Sums& sums, const TilePlace& tile, int row_begin, const WgmmaPlace& me,
                                     unsigned& turn) const {
        const unsigned staging = shared + Shape::kResults + static_cast<unsigned>(me.wave * 2 * Shape::kStagingBytes);
        TILEWISE_UNROLL
        for (int r = 0; r < Shape::kRepeats; ++r) {
            const typename Places::Box box = places.box(tile, row_begin + r * 64);
            TILEWISE_UNROLL
            for (int chunk = 0; chunk < Shape::kStoreChunks; ++chunk) {
                // The buffers take turns across tiles too: the copy before the last may still be reading its own.
                const unsigned buffer = staging + turn * Shape::kStagingBytes;
                turn ^= 1;
                if (me.thread == 0) store_wait_read<1>();
                me.sync();
                put_results(buffer, sums[r], chunk, me.thread);
                async_proxy_fence();
                me.sync();
                if (me.thread == 0) {
                    places.store(map_c, buffer, Shape::first_column(tile) + chunk * Shape::kStoreColumns, box);
                    store_commit();
                }
            }
        }
    }

    // The same where rows or columns have other places in C: threads write 16 bytes of a line each.
    TILEWISE_DEVICE void store_lines(const Sums& sums, const TilePlace& tile, int row_begin, const WgmmaPlace& me,
                                     unsigned& turn) const {
        constexpr int kPacks = Shape::kStoreBytes / 16, kElements = 16 / Out::bytes, kRows = 128 / kPacks;
        const unsigned staging = shared + Shape::kResults + static_cast<unsigned>(me.wave * 2 * Shape::kStagingBytes);
        auto* c = static_cast<typename Out::Storage*>(args.c.data) + places.group(tile) * args.c.batch_stride;
        const int first = me.thread / kPacks, pack = me.thread % kPacks;
        TILEWISE_UNROLL
        for (int r = 0; r < Shape::kRepeats; ++r) {
            Index rows[64 / kRows];
            TILEWISE_UNROLL
            for (int i = 0; i < 64 / kRows; ++i) rows[i] = places.row(row_begin + r * 64 + i * kRows + first);
            TILEWISE_UNROLL
            for (int chunk = 0; chunk < Shape::kStoreChunks; ++chunk) {
                // Everyone has left the buffer before the last one.
                const unsigned buffer = staging + turn * Shape::kStagingBytes;
                turn ^= 1;
                put_results(buffer, sums[r], chunk, me.thread);
                me.sync();
                // Each pack asks for its own place: 8-bit results have two lines of columns in a buffer.
                const int column = pack * kElements;
                const auto place = places.columns(Shape::first_column(tile) + chunk * Shape::kStoreColumns + column);
                if (place.count <= 0 || column >= Shape::columns_of(chunk)) continue;
                TILEWISE_UNROLL
                for (int i = 0; i < 64 / kRows; ++i) {
                    if (rows[i] < 0) continue;
                    float four[4];
                    load_shared_float4(buffer + swizzled(i * kRows + first, pack * 16), four);
                    store_global<16>(
                        c + rows[i] * args.c.row_stride + place.first,
                        Packet<16>{bits_of(four[0]), bits_of(four[1]), bits_of(four[2]), bits_of(four[3])});
                }
            }
        }
    }

    // The XOR of 16-byte chunks that the copy expects in the lines.
    static TILEWISE_DEVICE unsigned swizzled(int row, int byte) {
        constexpr unsigned kXorMask = Shape::kStoreBytes / 16 - 1;
        const auto offset = static_cast<unsigned>(row * Shape::kStoreBytes + byte);
        return offset ^ ((offset >> 7 & kXorMask) << 4);
    }

    // 64 rows of kStoreColumns results in a buffer.
    TILEWISE_DEVICE void put_results(unsigned buffer, const Sum (&d)[Shape::kOwnSums], int chunk, int thread) const {
        const int lane = thread % 32, warp_row = thread / 32 * 16;
        if constexpr (Out::bytes == 2) {
            // stmatrix: lanes 0-7 give the lines of the upper left 8 x 8, then lower left, upper right, lower right.
            const int row = warp_row + lane % 16, column_bytes = lane / 16 * 16;
            TILEWISE_UNROLL
            for (int c = 0; c < Shape::kStoreColumns / 16; ++c) {
                if (c * 16 >= Shape::columns_of(chunk)) break;
                const int i = (chunk * Shape::kStoreColumns + c * 16) / 2;
                store_matrices(buffer + swizzled(row, c * 32 + column_bytes),
                               {pack(d[i], d[i + 1]), pack(d[i + 2], d[i + 3]), pack(d[i + 4], d[i + 5]),
                                pack(d[i + 6], d[i + 7])});
            }
        } else {
            const int row = warp_row + lane / 4, column = lane % 4 * 2;
            TILEWISE_UNROLL
            for (int c = 0; c < Shape::kStoreColumns / 8; ++c) {
                if (c * 8 >= Shape::columns_of(chunk)) break;
                const int i = (chunk * Shape::kStoreColumns + c * 8) / 2, byte = (c * 8 + column) * Out::bytes;
                put_pair(buffer + swizzled(row, byte), d[i], d[i + 1]);
                put_pair(buffer + swizzled(row + 8, byte), d[i + 2], d[i + 3]);
            }
        }
    }
    TILEWISE_DEVICE void put_pair(unsigned at, Sum first, Sum second) const {
        const Value low = finish_simple<Out>(args, first), high = finish_simple<Out>(args, second);
        if constexpr (Out::bytes == 4) {
            store_shared_float2(at, __builtin_bit_cast(float, element_of<Out>(low)),
                                __builtin_bit_cast(float, element_of<Out>(high)));
        } else {
            store_shared<2>(at, {pack_bytes<Out>(low, high)});
        }
    }

    TILEWISE_DEVICE unsigned pack(Sum low, Sum high) const {
        return pack_pair<Out>(finish_simple<Out>(args, low), finish_simple<Out>(args, high));
    }

    // Everything else: 64 rows of some sums at a time through shared memory, then element by element. The loop
    // over them is not unrolled, and exists once, so that the code stays small; only the registers are picked by hand.
    TILEWISE_DEVICE void store_elements(const Sums& sums, const TilePlace& tile, int row_begin,
                                        const WgmmaPlace& me) const {
        const unsigned staging = shared + Shape::kResults + static_cast<unsigned>(me.wave * 2 * Shape::kStagingBytes);
        const bool pairs = Shape::kStoresPairs && args.split_k == 1 && is_plain(args);
        // A copy of the last tile may still be reading.
        if (me.thread == 0) store_wait_read<0>();
        me.sync();
        TILEWISE_ROLLED
        for (int part = 0; part < Shape::kRepeats * Shape::kStagedChunks; ++part) {
            TILEWISE_UNROLL
            for (int r = 0; r < Shape::kRepeats; ++r) {
                TILEWISE_UNROLL
                for (int chunk = 0; chunk < Shape::kStagedChunks; ++chunk) {
                    if (part == r * Shape::kStagedChunks + chunk) stage_sums(staging, sums[r], chunk, me.thread);
                }
            }
            me.sync();
            const int row = row_begin + part / Shape::kStagedChunks * 64;
            const int column = Shape::first_column(tile) + part % Shape::kStagedChunks * Shape::kStagedColumns;
            if (pairs) {
                if constexpr (Shape::kStoresPairs) store_pairs(staging, tile, row, column, me.thread);
            } else if constexpr (Places::kMoves) {
                finish_moved(staging, tile, row, column, me.thread);
            } else {
                finish_part(staging, tile, row, column, me.thread);
            }
            me.sync();
        }
    }

    // Neighbouring rows begin in other banks: groups of 8 columns change places.
    static constexpr int kGroups = Shape::kStagedColumns / 8;
    static TILEWISE_DEVICE unsigned staged_at(int row, int column) {
        return static_cast<unsigned>(row * Shape::kStagedColumns + ((column / 8) ^ (row % kGroups)) * 8 + column % 8) *
               4;
    }

    static TILEWISE_DEVICE float word(Sum sum) { return __builtin_bit_cast(float, sum); }
    static TILEWISE_DEVICE Sum load_sum(unsigned at) { return __builtin_bit_cast(Sum, load_shared_float(at)); }

    TILEWISE_DEVICE void stage_sums(unsigned staging, const Sum (&d)[Shape::kOwnSums], int chunk, int thread) const {
        const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
        TILEWISE_UNROLL
        for (int c = 0; c < kGroups; ++c) {
            const int i = (chunk * Shape::kStagedColumns + c * 8) / 2;
            store_shared_float2(staging + staged_at(row, c * 8 + column), word(d[i]), word(d[i + 1]));
            store_shared_float2(staging + staged_at(row + 8, c * 8 + column), word(d[i + 2]), word(d[i + 3]));
        }
    }

    // Pairs of 16-bit results that are alpha times the sums, in one access where they lie on its boundary.
    TILEWISE_DEVICE void store_pairs(unsigned staging, const TilePlace& tile, int row_begin, int column_begin,
                                     int thread) const {
        // A few at a time are on their way from shared memory.
        constexpr int kPairs = Shape::kStagedColumns / 2, kBatch = 4, kEach = 64 * kPairs / 128;
        static_assert(kEach % kBatch == 0);
        auto* c = static_cast<typename Out::Storage*>(args.c.data) + tile.batch * args.c.batch_stride;
        const int column = thread % kPairs * 2;
        const Index at_column = column_begin + column;
        const bool inside = at_column < args.n, whole = at_column + 1 < args.n;
        TILEWISE_ROLLED
        for (int first = 0; first < kEach; first += kBatch) {
            u32 pairs[kBatch];
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) {
                const unsigned at = staging + staged_at((first + i) * (128 / kPairs) + thread / kPairs, column);
                pairs[i] = pack(load_sum(at), load_sum(at + 4));
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) {
                const Index at_row = row_begin + (first + i) * (128 / kPairs) + thread / kPairs;
                if (!inside || at_row >= args.m) continue;
                auto* to = c + at_row * args.c.row_stride + at_column;
                if (whole && reinterpret_cast<u64>(to) % 4 == 0) {
                    *reinterpret_cast<u32*>(to) = pairs[i];
                } else {
                    to[0] = static_cast<u16>(pairs[i]);
                    if (whole) to[1] = static_cast<u16>(pairs[i] >> 16);
                }
            }
        }
    }

    TILEWISE_DEVICE void finish_part(unsigned staging, const TilePlace& tile, int row_begin, int column_begin,
                                     int thread) const {
        constexpr int kElements = 64 * Shape::kStagedColumns;
        // Threads that are neighbours write elements that are: along the tile's columns, or its rows.
        constexpr bool kAlongColumns = Config::c_row != Shape::kSwapped;
        TILEWISE_ROLLED
        for (int i = thread; i < kElements; i += 128) {
            const int row = kAlongColumns ? i / Shape::kStagedColumns : i % 64;
            const int column = kAlongColumns ? i % Shape::kStagedColumns : i / 64;
            const Index at_row = Shape::kSwapped ? column_begin + column : row_begin + row;  // of C
            const Index at_column = Shape::kSwapped ? row_begin + row : column_begin + column;
            if (at_row >= args.m || at_column >= args.n) continue;
            finish_element(load_sum(staging + staged_at(row, column)), tile, tile.batch, at_row, at_column);
        }
    }

    // The same where rows or columns have other places in C.
    TILEWISE_DEVICE void finish_moved(unsigned staging, const TilePlace& tile, int row_begin, int column_begin,
                                      int thread) const {
        const auto place = places.columns(column_begin);
        TILEWISE_ROLLED
        for (int i = thread; i < 64 * Shape::kStagedColumns; i += 128) {
            const int row = i / Shape::kStagedColumns, column = i % Shape::kStagedColumns;
            const Index at_row = places.row(row_begin + row);
            if (at_row < 0 || column >= place.count) continue;
            finish_element(load_sum(staging + staged_at(row, column)), tile, places.group(tile), at_row,
                           place.first + column);
        }
    }

    TILEWISE_DEVICE void finish_element(Sum sum, const TilePlace& tile, Index batch, Index row, Index column) const {
        if (args.split_k > 1) {
            const Index matrix = static_cast<Index>(tile.k_part) * args.batch + batch;
            static_cast<Sum*>(args.workspace)[(matrix * args.m + row) * args.n + column] = sum;
        } else {
            store<Out>(args, finish<Out>(args, sum, batch, row, column), batch, row, column);
        }
    }
};

}  // namespace tilewise::cuda::wgmma_gemm
