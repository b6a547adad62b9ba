// SPDX-License-Identifier: MIT
// The vector core: what the blocked loop nest asks of a micro-kernel family (packing of A, row pieces, one register
// tile), answered with the vector micro-kernels. The last rows of a block, fewer than warp_m, are cut into pieces for
// which micro-kernels exist (warp_m, then powers of two), so that no row is
// computed in vain; whole rows of micro-tiles use fewer vectors for a narrow last panel of B.
#pragma once
#include "micro.hpp"
#include "pack.hpp"

namespace tilewise::cpu {

template <class Config>
struct VectorCore {
    using Engine = typename EngineFor<kIsInteger<typename Config::A>, Config::warp_k>::type;
    using Acc = typename Engine::Acc;
    static constexpr int rows = Config::warp_m, vectors = Config::warp_n / kLanes;
    static constexpr int unit_step = 1;         // units of k are consumed one by one
    static constexpr bool whole_tiles = false;  // writes just the rows it was asked for
    static_assert(Config::warp_n % kLanes == 0, "warp_n must be a whole number of vectors");
    static_assert(Config::warp_k != 2 || kIsInteger<typename Config::A> || kHasBf16Dot,
                  "a float warp tile with k = 2 needs AVX512_BF16");
    static_assert(Config::warp_k != 2 || kIsInteger<typename Config::A> || !kSame<typename Config::A, Fp32>,
                  "a float warp tile with k = 2 multiplies bf16: fp32 does not fit");
    static_assert(Config::warp_k != 4 || kHasByteDot, "an int8 warp tile with k = 4 needs AVX512_VNNI");

    static constexpr int below(int r) {  // the next smaller piece
        int power = 1;
        while (power * 2 < r) power *= 2;
        return r > 1 ? power : 0;
    }

    template <int r = rows>
    static TILEWISE_INLINE Index piece_rows(Index left) {
        if constexpr (r > 1) {
            if (left < r) return piece_rows<below(r)>(left);
        }
        return r;
    }

    template <class T>
    static TILEWISE_INLINE void pack_a(u32* to, Operand<T> from, Index count, Index k, Index) {
        pack_panel<Engine, T, true>(to, count, from, count, k, nullptr);
    }

    // `count` rows (a piece) and at least the first `cols` columns of a panel.
    template <bool by_rows>
    static TILEWISE_INLINE void tile(Index count, Index cols, UnitsOfA a, const u32* b, Index b_stride, Index units,
                                     Acc* c, Index c_stride, const Ending& ending) {
        pick<by_rows>(count, cols)(a, b, b_stride, units, c, c_stride, ending);
    }

    using Function = void (*)(UnitsOfA, const u32*, Index, Index, Acc*, Index, const Ending&);
    template <bool by_rows, int r = rows, int v = vectors>
    static TILEWISE_INLINE Function pick(Index count, Index cols) {
        if constexpr (r > 1) {
            if (count != r) return pick<by_rows, below(r), v>(count, cols);
        }
        if constexpr (v > 1 && r == rows) {
            if (cols <= below(v) * kLanes) return pick<by_rows, r, below(v)>(count, cols);
        }
        return Micro<Engine, r, v, by_rows>::run;
    }
};

}  // namespace tilewise::cpu
