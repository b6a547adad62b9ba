// SPDX-License-Identifier: MIT
// The AMX core: what the blocked loop nest asks of a micro-kernel family, answered with tile registers. A tile holds 16
// rows of 64 bytes; a warp tile is rows/16 x cols/16 of them (1x1, 2x2, 1x3 or 3x1 accumulators), a step of k is 16
// units (32 bf16 or 64 int8). Tile registers: accumulators from 0 up, A from 4 up, B from 7 down.
// Packed A: [step][row][16 units], so a tile of A is 16 consecutive rows; packed B: [unit][column] as for vectors, read
// with a stride of warp_n. A step loads 1 KiB for each tile of A and of B. Rows past the edge are computed from
// whatever is in the panel and never stored; k past the end is zero in both operands.
#pragma once
#include "micro.hpp"
#include "pack.hpp"

namespace tilewise::cpu {

inline constexpr int kAmxDepth = 32;  // warp tiles at least this deep are for tile registers

// int8 as it is: the tile product takes both operands signed.
struct SignedBytesEngine {
    using Acc = i32;
    static constexpr int depth = 4;
    static constexpr bool compensates = false;
    template <class T>
    static constexpr bool in_place = false;
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_k(Elements<T> p) {
        return load<U>(p);
    }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_lanes(Elements<T> p, Index k_stride, const Edge<T>* edge) {
        return BytesEngine::along_lanes<T, false>(p, k_stride, edge);
    }
};

#if defined(__AMX_TILE__) || defined(__AMXTILE__)
inline constexpr int kTileRows = 16, kTileUnits = 16;
inline constexpr int kFirstTileOfA = 4, kTileRegisters = 8;

template <int tile>
TILEWISE_INLINE void tile_load(const void* p, Index bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(bytes), "i"(tile) : "memory");
}
template <int tile>
TILEWISE_INLINE void tile_store(void* p, Index bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(bytes), "i"(tile) : "memory");
}
template <int tile>
TILEWISE_INLINE void tile_zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <bool integer, int c, int a, int b>
TILEWISE_INLINE void tile_multiply() {
    if constexpr (integer) {
        asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    } else {
        asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    }
}

template <class Config>
struct AmxCore {
    static constexpr bool kInteger = kIsInteger<typename Config::A>;
    using Engine = typename ConditionalType<kInteger, SignedBytesEngine, Bf16Engine>::type;
    using Acc = typename Engine::Acc;
    static constexpr int rows = Config::warp_m, cols = Config::warp_n;
    static constexpr int tiles_m = rows / kTileRows, tiles_n = cols / kTileUnits,
                         kFirstTileOfB = kTileRegisters - tiles_n;
    static constexpr int unit_step = kTileUnits;
    static constexpr bool whole_tiles = true;  // always writes all rows of a warp tile
    static_assert(rows % kTileRows == 0 && cols % kTileUnits == 0, "an AMX warp tile is made of 16 x 16 tiles");
    static_assert(tiles_m * tiles_n <= kFirstTileOfA && kFirstTileOfA + tiles_m <= kFirstTileOfB,
                  "the warp tile needs more than eight tile registers");
    static_assert(kInteger || (!kSame<typename Config::A, Fp32> && !kSame<typename Config::A, Fp16>),
                  "AMX multiplies bf16 (also from fp8 and bf8) and int8");

    // Tile shapes of this thread; the permission to use tiles is asked for once per process by enter_thread.
    static TILEWISE_INLINE void begin() {
        struct alignas(64) {
            u8 palette, start_row, reserved[14];
            u16 row_bytes[16];
            u8 row_count[16];
        } config = {};
        config.palette = 1;
        for (int i = 0; i < kTileRegisters; ++i) config.row_bytes[i] = kTileUnits * 4, config.row_count[i] = kTileRows;
        asm volatile("ldtilecfg %0" : : "m"(config));
    }
    static TILEWISE_INLINE void end() { asm volatile("tilerelease"); }
    static int enter_thread() {
        constexpr long kArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18;
        long result;
        asm volatile("syscall"
                     : "=a"(result)
                     : "a"(kArchPrctl), "D"(kRequestPermission), "S"(kTileData)
                     : "rcx", "r11", "memory");
        return static_cast<int>(result);
    }

    static TILEWISE_INLINE Index piece_rows(Index) { return rows; }

    // `count` rows of A. Contiguous k is copied, contiguous rows are turned around 16 x 16 units at a time.
    template <class T>
    static TILEWISE_NOINLINE void pack_a(u32* to, Operand<T> from, Index count, Index k, Index units) {
        constexpr Index full = kTileUnits * Engine::depth;
        alignas(kCacheLine) typename T::Storage copy[full];
        for (Index step = 0; step * kTileUnits < units; ++step, to += rows * kTileUnits) {
            const Index left = k - step * full;
            for (Index row = 0; row < count && from.k_stride == 1; ++row) {
                const auto* p = from.at(row, step * full).p;
                if (left < full) {
                    __builtin_memset(copy, 0, sizeof(copy));
                    __builtin_memcpy(copy, p, left * sizeof(copy[0]));
                    p = copy;
                }
                store(to + row * kTileUnits, Engine::template along_k<T, true>(p));
            }
            for (Index row = 0; row < count && from.k_stride != 1; row += kTileRows) {
                U v[kTileUnits] = {};
                for (Index i = 0; i < kTileUnits && i * Engine::depth < left; ++i) {
                    const Operand<T> at = from.at(row, step * full + i * Engine::depth);
                    const Edge<T> edge = {left - i * Engine::depth, count - row, at.limit};
                    v[i] = Engine::template along_lanes<T, true>(at.p, at.k_stride, &edge);
                }
                transpose(v);
                for (int i = 0; i < kTileRows; ++i) store(to + (row + i) * kTileUnits, v[i]);
            }
        }
    }

    template <int i = 0>
    static TILEWISE_INLINE void start(const Acc* c, Index bytes, bool accumulate) {
        if constexpr (i < tiles_m * tiles_n) {
            const char* at =
                reinterpret_cast<const char*>(c + i % tiles_n * kTileUnits) + i / tiles_n * kTileRows * bytes;
            if (accumulate) {
                tile_load<i>(at, bytes);
            } else {
                tile_zero<i>();
            }
            start<i + 1>(c, bytes, accumulate);
        }
    }
    template <int i = 0>
    static TILEWISE_INLINE void load_a(const u32* a) {
        if constexpr (i < tiles_m) {
            tile_load<kFirstTileOfA + i>(a + i * kTileRows * kTileUnits, kTileUnits * sizeof(u32));
            load_a<i + 1>(a);
        }
    }
    template <int i = 0>
    static TILEWISE_INLINE void load_b(const u32* b) {
        if constexpr (i < tiles_n) {
            tile_load<kFirstTileOfB + i>(b + i * kTileUnits, cols * sizeof(u32));
            load_b<i + 1>(b);
        }
    }
    template <int i = 0>
    static TILEWISE_INLINE void multiply() {
        if constexpr (i < tiles_m * tiles_n) {
            tile_multiply<kInteger, i, kFirstTileOfA + i / tiles_n, kFirstTileOfB + i % tiles_n>();
            multiply<i + 1>();
        }
    }
    template <int i = 0>
    static TILEWISE_INLINE void finish(Acc* c, Index bytes) {
        if constexpr (i < tiles_m * tiles_n) {
            tile_store<i>(reinterpret_cast<char*>(c + i % tiles_n * kTileUnits) + i / tiles_n * kTileRows * bytes,
                          bytes);
            finish<i + 1>(c, bytes);
        }
    }

    template <bool by_rows>
    static TILEWISE_INLINE void tile(Index, Index, UnitsOfA a, const u32* b, Index, Index units, Acc* c, Index c_stride,
                                     const Ending& ending) {
        const u32* ap = reinterpret_cast<const u32*>(a.p);
        start(c, c_stride * Index(sizeof(Acc)), ending.accumulate);
        for (Index unit = 0; unit < units; unit += kTileUnits) {
            load_a(ap + unit * rows);
            load_b(b + unit * cols);
            multiply();
        }
        finish(c, c_stride * Index(sizeof(Acc)));
    }
};
#endif

}  // namespace tilewise::cpu
