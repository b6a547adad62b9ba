// SPDX-License-Identifier: MIT
// How a B lies that a GPU kernel reads packed (pipeline preshuffle): tile after tile of tile_n x tile_k, each as the kernel
// wants it in shared memory, zeros beyond the matrix; the tiles of a column of C one after the other along k, then the next
// column, then the next matrix. The host works out the size with it, the kernels addresses.
#pragma once
#include "args.hpp"

namespace tilewise {

struct PackedB {
    Index n, k, matrices;
    int tile_n, tile_k, tile_bytes;

    constexpr Index columns() const { return (n + tile_n - 1) / tile_n; }
    constexpr Index steps() const { return (k + tile_k - 1) / tile_k; }
    constexpr Index tiles() const { return matrices * columns() * steps(); }
    constexpr Index bytes() const { return tiles() * tile_bytes; }
    constexpr Index tile_offset(Index matrix, Index column, Index step) const {
        return ((matrix * columns() + column) * steps() + step) * tile_bytes;
    }
};

}  // namespace tilewise
