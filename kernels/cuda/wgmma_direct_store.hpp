// SPDX-License-Identifier: MIT
// The way of a tile's sums from registers to C without buffers, for blocks that have one tile: a tile is cut into pieces of 8
// columns, of each of which a thread has four sums. Where the blocks of a cluster each have a part of k (cluster_k), they share
// out the pieces: every block sends those of the others to their shared memory, in the place of the stages, once nobody reads
// these any more, and then adds up its own, in the order of the parts, so that the result is the same every time. Nobody waits for
// what is on its way to somebody else, and what a thread needs of the others comes from the same thread of each, thus lies in
// its own shared memory as it will read it.
#pragma once
#include "drain.hpp"
#include "epilogue.hpp"
#include "wgmma_shape.hpp"

namespace tilewise::cuda {

template <class Config>
struct WgmmaDirectStore {
    using Shape = WgmmaShape<Config>;
    using Out = typename Config::Out;
    using Sum = typename Shape::Sum;
    using Sums = typename Shape::Sums;
    using Value = ValueOf<Sum, Out>;

    static constexpr int kThreads = 128 * Shape::kWaves;
    // A thread has four sums of each piece (hopper.hpp, wgmma): two rows that are 8 apart, two neighbours of each.
    static constexpr int kPieceColumns = 8, kFour = 4, kRowsApart = 8;
    static constexpr int kPiecesAcross = Shape::kTileN / kPieceColumns, kPieces = Shape::kRepeats * kPiecesAcross;
    static constexpr int kPieceBytes = kThreads * kFour * int(sizeof(float));
    static constexpr int kMostParts = 8;
    static constexpr int most_received() {
        int most = 0;
        for (int parts = 2; parts <= kMostParts; ++parts) {
            const int pieces = (parts - 1) * ((kPieces + parts - 1) / parts);
            most = pieces > most ? pieces : most;
        }
        return most;
    }
    static_assert(most_received() * kPieceBytes <= Shape::kStaging, "what others send fits into the stages");
    static constexpr bool kStoresPairs = Config::vector_c % 2 == 0 && Config::c_row && !Shape::kSwapped;

    const KernelArgs& args;
    unsigned shared;  // its address
    const TilePlace& tile;
    const WgmmaPlace& me;
    static constexpr bool kShared = Shape::kSumsInCluster;  // by the blocks of a cluster
    int parts = kShared ? args.split_k : 1, part = kShared ? static_cast<int>(cluster_rank()) : 0;
    // This thread's first row and column in the tile.
    int row = me.thread / 32 * 16 + me.thread % 32 / 4 + me.wave * Shape::kWaveRows, column = me.thread % 4 * 2;
    // Rows and columns of C, in those of the tile, from the tile's first on.
    Index rows = (Shape::kSwapped ? args.n : args.m) - Shape::first_row(tile);
    Index columns = (Shape::kSwapped ? args.m : args.n) - Shape::first_column(tile);

    TILEWISE_DEVICE WgmmaDirectStore(const KernelArgs& kernel_args, unsigned shared_address, const TilePlace& place,
                                     const WgmmaPlace& thread)
        : args(kernel_args), shared(shared_address), tile(place), me(thread) {}

    // Block p has the pieces from share(p) on; pieces of the same rows follow each other.
    TILEWISE_DEVICE int share(int block) const { return kPieces * block / parts; }
    TILEWISE_DEVICE int owner(int piece) const { return kShared ? ((piece + 1) * parts - 1) / kPieces : 0; }
    // Where a block keeps what another has sent: the pieces of one after those of the other.
    TILEWISE_DEVICE unsigned received(int from, int to, int piece) const {
        const int first = share(to), slot = from < to ? from : from - 1;
        const int index = slot * (share(to + 1) - first) + piece - first;
        return shared + static_cast<unsigned>(index * kPieceBytes + (me.wave * 128 + me.thread) * 16);
    }
    // Where sums wait to be finished: in the place of those that were added first.
    TILEWISE_DEVICE unsigned kept(int piece) const { return received(part == 0 ? 1 : 0, part, piece); }
    static_assert(kPieces * kPieceBytes <= Shape::kStaging, "sums fit into the stages");
    // Whether anything of a piece is in C, for one thread of the warp at least.
    TILEWISE_DEVICE bool is_needed(int piece) const {
        const int first_row = row - me.thread % 32 / 4 + piece / kPiecesAcross * 64;
        return first_row < rows && piece % kPiecesAcross * kPieceColumns < columns;
    }

    TILEWISE_DEVICE void store(const Sums& sums) const {
        if constexpr (kShared) {
            cluster_sync();  // the products of all have been computed
            send(sums);
            cluster_sync();
        }
        const bool in_pairs = kStoresPairs && is_plain(args);
        if (!kShared && !in_pairs) {
            constexpr int kAllComputing = 6;      // a named barrier
            named_sync(kAllComputing, kThreads);  // nobody reads the stages any more
        }
        TILEWISE_UNROLL
        for (int piece = 0; piece < kPieces; ++piece) {
            if (owner(piece) != part || !is_needed(piece)) continue;
            Sum four[kFour];
            add_up(four, sums, piece);
            if (in_pairs) {
                store_pairs(four, piece);
            } else {
                store_shared<16>(kept(piece), {bits(four[0]), bits(four[1]), bits(four[2]), bits(four[3])});
            }
        }
        if (!in_pairs) store_elements();
    }

    static TILEWISE_DEVICE Sum sum_of(const Sums& sums, int piece, int i) {
        return sums[piece / kPiecesAcross][piece % kPiecesAcross * kFour + i];
    }
    TILEWISE_DEVICE void send(const Sums& sums) const {
        TILEWISE_UNROLL
        for (int piece = 0; piece < kPieces; ++piece) {
            const int to = owner(piece);
            if (to == part || !is_needed(piece)) continue;
            store_cluster_float4(in_block(received(part, to, piece), to), word(sum_of(sums, piece, 0)),
                                 word(sum_of(sums, piece, 1)), word(sum_of(sums, piece, 2)),
                                 word(sum_of(sums, piece, 3)));
        }
    }
    TILEWISE_DEVICE void add_up(Sum (&four)[kFour], const Sums& sums, int piece) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kFour; ++i) four[i] = 0;
        TILEWISE_ROLLED
        for (int p = 0; p < part; ++p) add_received(four, p, piece);
        TILEWISE_UNROLL
        for (int i = 0; i < kFour; ++i) four[i] += sum_of(sums, piece, i);
        TILEWISE_ROLLED
        for (int p = part + 1; p < parts; ++p) add_received(four, p, piece);
    }

    static TILEWISE_DEVICE float word(Sum sum) { return __builtin_bit_cast(float, sum); }
    static TILEWISE_DEVICE u32 bits(Sum sum) { return __builtin_bit_cast(u32, sum); }

    TILEWISE_DEVICE void add_received(Sum (&four)[kFour], int from, int piece) const {
        float words[kFour];
        load_shared_float4(received(from, part, piece), words);
        TILEWISE_UNROLL
        for (int i = 0; i < kFour; ++i) four[i] += __builtin_bit_cast(Sum, words[i]);
    }

    // Nothing to do but to multiply by alpha, and rows that hold whole pairs.
    TILEWISE_DEVICE void store_pairs(const Sum (&four)[kFour], int piece) const {
        const int at_row = row + piece / kPiecesAcross * 64, at_column = column + piece % kPiecesAcross * kPieceColumns;
        if (at_column >= columns) return;
        auto* c = static_cast<typename Out::Storage*>(args.c.data) + tile.batch * args.c.batch_stride +
                  Shape::first_column(tile) + at_column;
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            const Value values[2] = {finish_plain<Out>(args, four[2 * i]), finish_plain<Out>(args, four[2 * i + 1])};
            const int in_tile = at_row + i * kRowsApart;
            if (in_tile < rows) {
                store_global<2 * Out::bytes>(c + (Shape::first_row(tile) + in_tile) * args.c.row_stride,
                                             pack_values<Out>(values));
            }
        }
    }

    // Everything else, from where the sums have been put, each thread its own. The loop is not unrolled: finishing is a lot of code.
    TILEWISE_DEVICE void store_elements() const {
        const int first = share(part), end = share(part + 1);
        TILEWISE_ROLLED
        for (int i = first * kFour; i < end * kFour; ++i) {
            const int piece = i / kFour, which = i % kFour;
            const int in_row = row + piece / kPiecesAcross * 64 + which / 2 * kRowsApart;
            const int in_column = column + piece % kPiecesAcross * kPieceColumns + which % 2;
            if (in_row >= rows || in_column >= columns) continue;
            const Sum sum = __builtin_bit_cast(Sum, load_shared_float(kept(piece) + which * 4));
            const Index tile_row = Shape::first_row(tile) + in_row, tile_column = Shape::first_column(tile) + in_column;
            const Index at_row = Shape::kSwapped ? tile_column : tile_row;
            const Index at_column = Shape::kSwapped ? tile_row : tile_column;
            tilewise::cuda::store<Out>(args, finish<Out>(args, sum, tile.batch, at_row, at_column), tile.batch, at_row,
                                       at_column);
        }
    }
};

}  // namespace tilewise::cuda
