// SPDX-License-Identifier: MIT
// The way of a block's sums from registers to C or, with split_k, to the workspace. A warp takes them out pass by pass
// through a region of shared memory of its own (32-bit sums, kRegionRows x kRegionCols): the core puts some of its sums there,
// and runs of vector_c elements are finished and leave. That also serves configs with the direct epilogue where the chain is only
// known at run time, since registers cannot be indexed in a loop.
// A core offers: kRegionRows, kRegionCols, kRowStep (rows of the tile from row to row of the region), kPasses,
// put(pass, address), pass_row(pass), pass_col(pass) (of the region's first element in the tile), and for the direct
// way kRun and visit(f), which calls f(row, col, values) for every run of kRun sums along n.
#pragma once
#include "epilogue.hpp"
#include "packet.hpp"
#include "tile_layout.hpp"

namespace tilewise::gpu {

// The region a core puts its sums in. Pairs of chunks are exchanged, so that the pairs of columns of eight rows, which is
// how matrix units leave their results, fall on different banks.
template <int rows, int cols>
struct DrainRegion {
    static constexpr int kFloat = 4, kRowBytes = cols * kFloat, kBytes = rows * kRowBytes;
    static constexpr int kChunks = kRowBytes / kChunkBytes;
    static_assert(kRowBytes % kChunkBytes == 0 && (kChunks & (kChunks - 1)) == 0);
    static constexpr int kSwizzled = kChunks < kBankChunks ? kChunks : kBankChunks;
    static constexpr int kRowsPerTurn = kBankChunks / kSwizzled;

    static TILEWISE_DEVICE u32 at(u32 row, u32 col) {
        const u32 swizzle = (row / kRowsPerTurn * 2) & (kSwizzled - 1);
        return row * kRowBytes + ((col / 4) ^ swizzle) * kChunkBytes + col % 4 * kFloat;
    }
};

// The columns of a region: those of a wave, or fewer where the operands' buffers have no place for them.
TILEWISE_DEVICE constexpr int region_cols(int wave_cols, int rows, int warps, int shared_bytes) {
    int cols = wave_cols;
    while (cols > 4 && cols * rows * warps * int(sizeof(float)) > shared_bytes) cols /= 2;
    return cols;
}

// Rows of a tile that are neighbours in C.
struct EvenRows {
    static constexpr bool kEven = true;
    Index first;
    TILEWISE_DEVICE Index operator()(int row) const { return first + row; }
};

// Columns of a tile that are neighbours in C.
struct EvenColumns {
    static constexpr bool kEven = true;
    Index first;
    static TILEWISE_DEVICE bool exists(int) { return true; }
    TILEWISE_DEVICE Index operator()(int col) const { return first + col; }
};

// Whether sums go to the workspace although there is only one part of them.
template <class Config>
TILEWISE_DEVICE constexpr bool sums_apart() {
    if constexpr (requires { Config::two_stage; }) {
        return Config::direction == Direction::backward_weight && (Config::two_stage || Config::split_image);
    } else {
        return false;
    }
}

// Whether every sum is left to the second kernel of the family, of which several become a result.
template <class Config>
TILEWISE_DEVICE constexpr bool leaves_sums() {
    if constexpr (requires { Config::leaves_sums; }) {
        return Config::leaves_sums;
    } else {
        return false;
    }
}

template <class Config>
TILEWISE_DEVICE constexpr bool has_uneven_images() {
    if constexpr (requires { Config::channels_last; }) {
        return !Config::channels_last && Config::direction != Direction::backward_weight;
    } else {
        return false;
    }
}

// Rows gives the row of C for each row of the tile, Columns the column, where it exists.
template <class Config, class Core, class Rows = EvenRows, class Columns = EvenColumns>
struct Drain {
    using Chain = ChainOf<Config>;
    using Out = typename Config::Out;
    using Sum = SumOf<typename Config::A>;
    using Value = ValueOf<Sum, Out>;
    using Region = DrainRegion<Core::kRegionRows, Core::kRegionCols>;
    static constexpr int kLanes = kArchLanes;
    static constexpr int kRows = Core::kRegionRows, kCols = Core::kRegionCols;
    static_assert(Region::kBytes * Config::wave_m * Config::wave_n <= Config::shared_bytes,
                  "a region for every warp in the operands' buffers");
    static_assert(Config::vector_c * Out::bytes <= kChunkBytes, "an access is at most 16 bytes");
    // Rows of the region that are apart in C cannot leave together.
    static constexpr int kVector = Config::c_row || Core::kRowStep == 1 ? Config::vector_c : 1;
    static_assert((Config::c_row ? kCols : kRows) % kVector == 0);
    static_assert(Columns::kEven || (Config::c_row && kVector == 1), "columns that are apart leave one by one");

    using Element = typename Out::Storage;
    // Rows of a channels-first activation do not go on from image to image.
    static constexpr bool kEvenImages = !has_uneven_images<Config>();

    const KernelArgs& args;
    Index batch;
    int k_part;
    Rows rows;
    Columns columns;
    int rows_left, cols_left;  // of the product from there on, at most a tile
    Element* tile;             // where rows are even, its first element in C
    SharedAddress region;      // of this warp

    // The tile at row and col of a product of m x n.
    TILEWISE_DEVICE Drain(const KernelArgs& kernel_args, Index entry, int part, Index m, Index n, Index row, Index col,
                          SharedAddress own_region, Rows row_places, Columns column_places)
        : args(kernel_args), batch(entry), k_part(part), rows(row_places), columns(column_places), region(own_region) {
        rows_left = m - row < Config::tile_m ? int(m - row) : Config::tile_m;
        cols_left = n - col < Config::tile_n ? int(n - col) : Config::tile_n;
        if constexpr (Rows::kEven && Columns::kEven)
            tile = static_cast<Element*>(args.c.data) + c_offset(args, batch, row, col);
    }

    // Rows and columns are counted from the tile's first, here and below.
    TILEWISE_DEVICE void run(const Core& core) const {
        if constexpr (leaves_sums<Config>()) return write_sums(core);
        const bool partial = sums_apart<Config>() || args.split_k > 1;
        if (!Config::staged_epilogue && !partial && finishes_in_registers<Chain, Out, Sum>(args))
            return write_direct(core);
        const bool plain = is_plain<Chain>(args);
        TILEWISE_ROLLED
        for (int pass = 0; pass < Core::kPasses; ++pass) {
            core.put(pass, region);
            sync_warp();
            const int row = core.pass_row(pass), col = core.pass_col(pass);
            if (partial) {
                write_partial(row, col);
            } else {
                plain ? write_region<true>(row, col) : write_region<false>(row, col);
            }
            sync_warp();
        }
    }

private:
    TILEWISE_DEVICE bool is_inside(int row, int col) const {
        return row < rows_left && col < cols_left && columns.exists(col);
    }

    static constexpr Along kAlong = Config::c_row ? Along::columns : Along::rows;

    // The run of at most V elements from (row, col) of the tile on.
    template <int V>
    TILEWISE_DEVICE RunPlace place_of(int row, int col) const {
        const int left = Config::c_row ? cols_left - col : rows_left - row;
        return run_place(args, batch, rows(row), columns(col), left < V ? left : V);
    }
    template <int V>
    TILEWISE_DEVICE void write_values(const Value (&values)[V], int row, int col) const {
        Element* to = nullptr;
        if constexpr (Rows::kEven && Columns::kEven && kEvenImages) {
            to = tile + (Config::c_row ? row * args.c.row_stride + col : row + col * args.c.col_stride);
        } else {
            to = static_cast<Element*>(args.c.data) + c_offset(args, batch, rows(row), columns(col));
        }
        store_global<V * Out::bytes>(to, pack_values<Out>(values));
    }

    TILEWISE_DEVICE void write_direct(const Core& core) const {
        constexpr int run = Config::c_row && Config::vector_c >= Core::kRun ? Core::kRun : 1;
        core.visit([&](int row, int col, const Sum(&sums)[Core::kRun]) {
            TILEWISE_UNROLL
            for (int first = 0; first < Core::kRun; first += run) {
                if (!is_inside(row, col + first)) continue;
                Sum some[run];
                TILEWISE_UNROLL
                for (int i = 0; i < run; ++i) some[i] = sums[first + i];
                Value values[run];
                finish_in_registers<Chain, Out, Along::columns>(args, some, place_of<run>(row, col + first), values);
                write_values(values, row, col + first);
            }
        });
    }

    // Neighbouring lanes take neighbouring runs of C.
    template <bool plain>
    TILEWISE_DEVICE void write_region(int row, int col) const {
        constexpr int runs = (Config::c_row ? kCols : kRows) / kVector, total = kRows * kCols / kVector;
        for (int e = lane_index(); e < total; e += kLanes) {
            const int r = Config::c_row ? e / runs : e % runs * kVector;
            const int c = Config::c_row ? e % runs * kVector : e / runs;
            const int out_row = row + r * Core::kRowStep, out_col = col + c;
            if (!is_inside(out_row, out_col)) continue;
            float words[kVector];
            load_words(r, c, words);
            Sum sums[kVector];
            TILEWISE_UNROLL
            for (int i = 0; i < kVector; ++i) sums[i] = __builtin_bit_cast(Sum, words[i]);
            Value values[kVector];
            if constexpr (plain) {
                TILEWISE_UNROLL
                for (int i = 0; i < kVector; ++i) values[i] = finish_plain<Out>(args, sums[i]);
            } else {
                finish_run<Chain, Out, kAlong>(args, sums, place_of<kVector>(out_row, out_col), values);
            }
            write_values(values, out_row, out_col);
        }
    }

    // kVector words from (r, c) of the region on, along the contiguous axis of C.
    TILEWISE_DEVICE void load_words(int r, int c, float (&values)[kVector]) const {
        if constexpr (Config::c_row && kVector % 4 == 0) {
            TILEWISE_UNROLL
            for (int i = 0; i < kVector; i += 4) {
                float four[4];
                load_shared_float4(region + Region::at(r, c + i), four);
                TILEWISE_UNROLL
                for (int j = 0; j < 4; ++j) values[i + j] = four[j];
            }
        } else {
            TILEWISE_UNROLL
            for (int i = 0; i < kVector; ++i) {
                values[i] = load_shared_float(region + (Config::c_row ? Region::at(r, c + i) : Region::at(r + i, c)));
            }
        }
    }

    // Raw sums to the workspace: [part][batch][m][n].
    TILEWISE_DEVICE float* partial_sums() const {
        return static_cast<float*>(args.workspace) + (k_part * args.batch + batch) * args.m * args.n;
    }
    // From registers, as they are, in runs where lines are whole ones.
    TILEWISE_DEVICE void write_sums(const Core& core) const {
        float* to = partial_sums();
        const bool whole = args.n % Core::kRun == 0;
        core.visit([&](int row, int col, const Sum(&sums)[Core::kRun]) {
            if (!is_inside(row, col)) return;
            float* run = to + rows(row) * args.n + columns(col);
            if (whole) return store_global<Core::kRun * 4>(run, pack_values<Fp32>(sums));
            TILEWISE_UNROLL
            for (int i = 0; i < Core::kRun; ++i) {
                if (is_inside(row, col + i)) run[i] = sums[i];
            }
        });
    }
    TILEWISE_DEVICE void write_partial(int row, int col) const {
        float* to = partial_sums();
        for (int e = lane_index(); e < kRows * kCols; e += kLanes) {
            const int r = e / kCols, c = e % kCols;
            const int out_row = row + r * Core::kRowStep, out_col = col + c;
            if (is_inside(out_row, out_col)) {
                to[rows(out_row) * args.n + columns(out_col)] = load_shared_float(region + Region::at(r, c));
            }
        }
    }
};

}  // namespace tilewise::gpu
