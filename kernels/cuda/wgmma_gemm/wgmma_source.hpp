// SPDX-License-Identifier: MIT
// Where the copying warp of a warpgroup kernel (wgmma_gemm.hpp) finds the operands of a stage: plain matrices here, those of a
// convolution in im2col_conv.hpp. A source says in which order tiles are taken and how many stages deep a tile is, is told
// which tile begins and at which stage, and then copies one stage after the other: first the tile's rows, behind them its
// columns, Shape::kCopiedBytes in all that count on the given barrier. Those that compute ask how many products of each stage
// have something to add (Depths).
#pragma once
#include "../../common/packed_b.hpp"
#include "wgmma_store.hpp"

namespace tilewise::cuda::wgmma_gemm {

// A block's place in its cluster, and the blocks that use the same rows or columns of an operand as it does.
template <class Shape>
struct ClusterPlace {
    int in_m, in_n;
    unsigned short sharing_a, sharing_b;

    TILEWISE_DEVICE ClusterPlace() {
        const unsigned rank = Shape::kCluster > 1 ? cluster_rank() : 0;
        in_m = static_cast<int>(rank) % Shape::kClusterM, in_n = static_cast<int>(rank) / Shape::kClusterM;
        // The blocks in my column of the cluster share B with me, those in my row share A.
        sharing_b = static_cast<unsigned short>(((1u << Shape::kClusterM) - 1) << (in_n * Shape::kClusterM));
        sharing_a = 0;
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kClusterN; ++i)
            sharing_a |= static_cast<unsigned short>(1u << (i * Shape::kClusterM + in_m));
    }
};

// One operand of a stage from a map of matrices: `kExtent` rows (or columns) from `first`, and `k` along the reduction. Blocks
// of the cluster that use the same tile each copy a share of its lines to all of them.
template <class Shape, int kExtent, bool kAlongK, int kSharers, int kLineBytes>
TILEWISE_DEVICE void copy_operand(const TensorMap& map, unsigned to, unsigned barrier, int first, int k, int batch,
                                  int share, unsigned short blocks, unsigned long long keep) {
    constexpr int kLine = kLineBytes / Shape::A::bytes;
    constexpr int kBoxes = kAlongK ? 1 : kExtent / kLine;
    constexpr int kLines = (kAlongK ? kExtent : Shape::kDepth) / kSharers;
    const int line = share * kLines;
    TILEWISE_UNROLL
    for (int box = 0; box < kBoxes; ++box) {
        const unsigned at = to + static_cast<unsigned>((box * Shape::kDepth + line) * kLineBytes);
        const int x = kAlongK ? k : first + box * kLine;
        const int y = kAlongK ? first + line : k + line;
        if constexpr (kSharers == 1) {
            copy_box(at, map, barrier, x, y, batch, keep);
        } else {
            copy_box_multicast(at, map, barrier, x, y, batch, blocks, keep);
        }
    }
}
// Those of the tile's rows and columns.
template <class Shape>
TILEWISE_DEVICE void copy_rows(const TensorMap& map, unsigned to, unsigned barrier, int first, int k, int batch,
                               int share, unsigned short blocks, unsigned long long keep = kKeepNormal) {
    copy_operand<Shape, Shape::kTileM, Shape::kRowsAlongK, Shape::kClusterN, Shape::kRowLineBytes>(
        map, to, barrier, first, k, batch, share, blocks, keep);
}
template <class Shape>
TILEWISE_DEVICE void copy_columns(const TensorMap& map, unsigned to, unsigned barrier, int first, int k, int batch,
                                  int share, unsigned short blocks, unsigned long long keep = kKeepNormal) {
    copy_operand<Shape, Shape::kTileN, Shape::kColumnsAlongK, Shape::kClusterM, Shape::kColumnLineBytes>(
        map, to, barrier, first, k, batch, share, blocks, keep);
}

template <class Config>
struct MatrixSource {
    using Shape = WgmmaShape<Config>;
    using Order = TileOrder<Shape::kClusterM, Shape::kClusterN>;
    using Places = MatrixPlaces;
    static constexpr bool kMayBeEmpty = false;  // whether a tile may have nothing to sum up
    static constexpr bool kTrims = false;       // whether a stage may hold fewer products than it has room for

    const KernelArgs& args;
    const TensorMap &map_a, &map_b;
    ClusterPlace<Shape> me;
    int row, column, batch_rows, batch_columns;  // of the tile
    // An operand that one row (or column) of tiles alone reads should not drive the other one out of the cache.
    unsigned long long keep_rows = kKeepNormal, keep_columns = kKeepNormal;

    TILEWISE_DEVICE MatrixSource(const KernelArgs& kernel_args, const TensorMap& a, const TensorMap& b)
        : args(kernel_args), map_a(a), map_b(b) {
        const bool one_row = (Shape::kSwapped ? args.n : args.m) <= Shape::kTileM * Shape::kClusterM;
        const bool one_column = (Shape::kSwapped ? args.m : args.n) <= Shape::kTileN * Shape::kClusterN;
        // One matrix may serve the whole batch.
        const auto own = [&](const KernelMatrix& matrix) { return args.batch == 1 || matrix.batch_stride != 0; };
        if (one_row && !one_column && own(Shape::kSwapped ? args.a : args.b)) keep_columns = kKeepFirst;
        if (one_column && !one_row && own(Shape::kSwapped ? args.b : args.a)) keep_rows = kKeepFirst;
    }

    static TILEWISE_DEVICE Order order(const KernelArgs& args) {
        return {args, Shape::kSwapped ? Shape::kTileN : Shape::kTileM, Shape::kSwapped ? Shape::kTileM : Shape::kTileN};
    }
    static TILEWISE_DEVICE int steps(const KernelArgs& args, const TilePlace&) {
        return static_cast<int>((args.k + Shape::kTileK - 1) / Shape::kTileK);
    }

    // The same, for one tile after the other.
    struct Steps {
        const KernelArgs& args;
        explicit TILEWISE_DEVICE Steps(const KernelArgs& kernel_args) : args(kernel_args) {}
        TILEWISE_DEVICE int operator()(const TilePlace& tile) const { return steps(args, tile); }
    };

    // Products along k of the next stage: all of them.
    struct Depths {
        TILEWISE_DEVICE Depths(const KernelArgs&, int) {}
        TILEWISE_DEVICE int next() const { return Shape::kSteps; }
    };

    TILEWISE_DEVICE void begin(const TilePlace& tile, int) {
        row = Shape::first_row(tile), column = Shape::first_column(tile);
        // One matrix may serve the whole batch.
        const int batch_a = args.a.batch_stride ? static_cast<int>(tile.batch) : 0;
        const int batch_b = args.b.batch_stride ? static_cast<int>(tile.batch) : 0;
        batch_rows = Shape::kSwapped ? batch_b : batch_a, batch_columns = Shape::kSwapped ? batch_a : batch_b;
    }

    // The boxes of a matrix with fewer lines than a tile end with it (src/family/cuda/block_grid.cpp), since copying what is not there
    // takes time, too. Then the other lines of the tile hold anything, and so do rows and columns of sums that are not in C.
    TILEWISE_DEVICE unsigned copied_bytes() const {
        const Index rows = Shape::kSwapped ? args.n : args.m, columns = Shape::kSwapped ? args.m : args.n;
        int lacking = 0;
        if (Shape::kTrimsRows && rows < Shape::kTileM)
            lacking += (Shape::kTileM - static_cast<int>(rows)) * Shape::kRowLineBytes;
        if (Shape::kTrimsColumns && columns < Shape::kTileN)
            lacking += (Shape::kTileN - static_cast<int>(columns)) * Shape::kColumnLineBytes;
        return static_cast<unsigned>(Shape::kCopiedBytes - lacking);
    }

    TILEWISE_DEVICE void copy(unsigned to, unsigned barrier, int step) {
        copy_rows<Shape>(Shape::kSwapped ? map_b : map_a, to, barrier, row, step * Shape::kTileK, batch_rows, me.in_n,
                         me.sharing_a, keep_rows);
        if constexpr (Shape::kPackedB) {
            copy_bytes(to + Shape::kBytesA, packed_tile(step), Shape::kBytesB, barrier, kKeepNormal);
        } else {
            copy_columns<Shape>(Shape::kSwapped ? map_a : map_b, to + Shape::kBytesA, barrier, column,
                                step * Shape::kTileK, batch_columns, me.in_m, me.sharing_b, keep_columns);
        }
    }

    // The same towards the cache. All blocks read the same few rows (or columns) of the small operand: each asks for one stage.
    TILEWISE_DEVICE void prefetch(int step) const {
        if constexpr (Shape::kRowsAlongK && Shape::kColumnsAlongK && !Shape::kPackedB) {
            const bool mine = step % Shape::kStages == static_cast<int>(block_index() % Shape::kStages);
            if (Shape::kSwapped || mine)
                prefetch_box(Shape::kSwapped ? map_b : map_a, step * Shape::kTileK, row, batch_rows, keep_rows);
            if (!Shape::kSwapped || mine)
                prefetch_box(Shape::kSwapped ? map_a : map_b, step * Shape::kTileK, column, batch_columns,
                             keep_columns);
        }
    }

private:
    // A B that was packed ahead lies tile after tile (../common/packed_b.hpp).
    TILEWISE_DEVICE const void* packed_tile(int step) const {
        const PackedB packed = {args.n, args.k, args.batch, Shape::kTileN, Shape::kTileK, Shape::kBytesB};
        return static_cast<const char*>(args.b.data) + packed.tile_offset(batch_columns, column / Shape::kTileN, step);
    }
};

}  // namespace tilewise::cuda::wgmma_gemm
