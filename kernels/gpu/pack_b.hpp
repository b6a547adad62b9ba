// SPDX-License-Identifier: MIT
// A B that is packed ahead for kernels of the pipeline preshuffle (../common/packed_b.hpp): the kernel that packs it, and the
// way of its tiles to shared memory, which is a plain copy. A tile is packed by bringing it to shared memory just as a kernel of
// another pipeline does and writing that out; the tiles of warpgroup products, lines of 128 bytes along k, have their chunks exchanged
// the same way as the tensor copies do it (tile_layout.hpp).
#pragma once
#include "../common/packed_b.hpp"
#include "transposed_tile.hpp"

namespace tilewise::gpu {

// With the interface of OperandTile as far as a ring of asynchronous copies uses it.
template <class Tile, int threads>
struct PackedTile {
    static constexpr bool kAlongK = Tile::kAlongK;
    using Layout = typename Tile::Layout;
    static constexpr int kBytes = Tile::kBytes, kRegisters = 0, kCount = 0;
    static_assert(kBytes % kChunkBytes == 0);

    const char* tile;  // at the first step of k

    TILEWISE_DEVICE void copy(SharedAddress to, int step, int) const {
        const char* from = tile + Index(step) * kBytes;
        TILEWISE_UNROLL
        for (int first = 0; first < kBytes; first += threads * kChunkBytes) {
            const int at = first + thread_index() * kChunkBytes;
            if (kBytes % (threads * kChunkBytes) == 0 || at < kBytes) {
                copy_async<kChunkBytes>(to + at, from + at, kChunkBytes);
            }
        }
    }
};

template <bool packed, int threads, class Tile>
struct PackedChoice {
    using type = Tile;
};
template <int threads, class Tile>
struct PackedChoice<true, threads, Tile> {
    using type = PackedTile<Tile, threads>;
};

inline constexpr int kPackBThreads = 256;  // of a block; any number of blocks

template <class Config>
struct PackB {
    using B = typename Config::B;
    using Tile =
        typename TileChoice<B, Config::tile_n, Config::tile_k, !Config::b_row, Config::vector_b, kPackBThreads>::type;

    // From b to the workspace.
    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const PackedB packed = {args.n,         args.k,         args.b.batch_stride == 0 ? 1 : args.batch,
                                Config::tile_n, Config::tile_k, Tile::kBytes};
        const SharedAddress shared = shared_start();
        TILEWISE_ROLLED
        for (Index at = block_index(); at < packed.tiles(); at += block_count()) {
            const Index column = quotient(at, packed.steps()), step = at - column * packed.steps();
            const Index matrix = quotient(column, packed.columns()), k = step * Config::tile_k;
            const Tile tile({static_cast<const typename B::Storage*>(args.b.data) + matrix * args.b.batch_stride,
                             args.n, args.k, Config::b_row ? args.b.row_stride : args.b.col_stride},
                            (column - matrix * packed.columns()) * Config::tile_n, k);
            tile.move(shared, 0, args.k - k < Config::tile_k ? int(args.k - k) : Config::tile_k);
            sync_block();
            write(shared, static_cast<char*>(args.workspace) + at * Tile::kBytes);
            sync_block();
        }
    }

private:
    static TILEWISE_DEVICE void write(SharedAddress from, char* to) {
        for (int at = thread_index() * kChunkBytes; at < Tile::kBytes; at += kPackBThreads * kChunkBytes) {
            float words[4];
            load_shared_float4(from + at, words);
            Packet<kChunkBytes> chunk;
            TILEWISE_UNROLL
            for (int i = 0; i < 4; ++i) chunk.words[i] = bits_of(words[i]);
            store_global<kChunkBytes>(to + at, chunk);
        }
    }
};

}  // namespace tilewise::gpu

#define TILEWISE_GPU_PACK_B(Config)                                            \
    extern "C" __global__ void __launch_bounds__(tilewise::gpu::kPackBThreads) \
        tilewise_pack_b(const __grid_constant__ tilewise::KernelArgs args) {   \
        tilewise::gpu::PackB<Config>::run(args);                               \
    }
