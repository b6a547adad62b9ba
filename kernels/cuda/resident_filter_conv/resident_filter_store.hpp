// SPDX-License-Identifier: MIT
// The way of a worker's sums in resident_filter_conv.hpp to C, through a staging of its own in shared memory, 64 positions at a time. Where
// the epilogue is known, or nothing but alpha, elements are made in registers and leave as whole accesses. Otherwise sums go there as
// they are, half the columns at a time, and one rolled loop finishes them (epilogue.hpp): where pairs of neighbours are not aligned, and
// where tensors would be read for so many sums that registers run out.
#pragma once
#include "../../common/resident_filter_conv_args.hpp"
#include "../../gpu/divisor.hpp"
#include "../../gpu/epilogue.hpp"
#include "../hopper.hpp"

namespace tilewise::cuda::resident_filter_conv {

// Which row of C a position's result is, of a class of pixels.
template <class Config>
struct ResidentFilterPlaces {
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kStrideH = kBackward ? Config::ct_stride[1] : 1,
                         kStrideW = kBackward ? Config::ct_stride[2] : 1;
    Divisor width, height;
    int origin_h, origin_w, in_h, in_w, images;

    TILEWISE_DEVICE ResidentFilterPlaces(const KernelConv& conv, const ResidentFilterConvArgs& shape)
        : width(u32(shape.extent[2])), height(u32(shape.extent[1])) {
        origin_h = int(conv.pad[1]) % kStrideH, origin_w = int(conv.pad[2]) % kStrideW;
        in_h = int(kBackward ? conv.in[1] : conv.out[1]), in_w = int(kBackward ? conv.in[2] : conv.out[2]);
        images = int(conv.images);
    }
    TILEWISE_DEVICE int row(int position, int of_class) const {
        u32 at = u32(position);
        u32 line = width.divide(at);
        const u32 image = height.divide(line);
        const int y = int(line) * kStrideH + of_class / kStrideW - origin_h;
        const int x = int(at) * kStrideW + of_class % kStrideW - origin_w;
        const bool is_there = y >= 0 && y < in_h && x >= 0 && x < in_w && int(image) < images;
        return is_there ? (int(image) * in_h + y) * in_w + x : -1;
    }
};

template <class Config>
struct ResidentFilterStore {
    using Out = typename Config::Out;
    using Chain = ChainOf<Config>;
    using Places = ResidentFilterPlaces<Config>;
    static constexpr int kColumns = Config::tile_n, kOwnSums = kColumns / 2;
    static constexpr int kRows = Config::tile_m / Config::wave_m, kRepeats = kRows / 64;
    static constexpr int kClasses = Places::kStrideH * Places::kStrideW;
    static constexpr int kPitch = (kColumns / 8 | 1) * 16;  // an odd number of chunks: rows begin in different banks
    static constexpr int kStagingBytes = 64 * kPitch, kTableBytes = 64 * 4;
    static_assert(Out::bytes == 2 && kColumns * int(Out::bytes) <= kPitch);
    using Sums = float[kRepeats][kClasses][kOwnSums];

    const KernelArgs& args;
    SharedAddress staging, row_table;  // of this worker
    int barrier, group, column;        // of the block, the first ones
    int columns;                       // from that one on; those of merged groups follow each other
    Places places;

    TILEWISE_DEVICE ResidentFilterStore(const KernelArgs& kernel_args, const ResidentFilterConvArgs& shape,
                                        SharedAddress own_staging, SharedAddress own_table, int own_barrier,
                                        int first_group, int first_column)
        : args(kernel_args),
          staging(own_staging),
          row_table(own_table),
          barrier(own_barrier),
          group(first_group),
          column(first_column),
          columns(int(args.n) * Config::merge - first_column),
          places(args.conv, shape) {}

    TILEWISE_DEVICE void run(const Sums& sums, int tile) const {
        if (is_made_in_registers()) {
            store(sums, tile);
        } else {
            finish_all(sums, tile);
        }
    }

private:
    TILEWISE_DEVICE bool is_made_in_registers() const {
        if constexpr (Chain::kFixed && Chain::kReadsTensors && kClasses > 1) return false;
        return finishes_in_registers<Chain, Out, float, 2>(args);
    }
    static TILEWISE_DEVICE int own_thread() { return thread_index() % 128; }
    TILEWISE_DEVICE void sync() const { named_sync(barrier, 128); }

    TILEWISE_DEVICE void put_rows(int position, int of_class) const {
        const int thread = own_thread();
        if (thread < 64) {
            const int row = places.row(position + thread, of_class);
            store_shared<4>(row_table + SharedAddress(thread * 4), Packet<4>{{u32(row)}});
        }
    }
    TILEWISE_DEVICE int row_of(int own_row) const {
        return int(load_shared<4>(row_table + SharedAddress(own_row * 4)).words[0]);
    }
    // `count` elements of a row of C, -1 for none, from one of the block's columns on.
    TILEWISE_DEVICE RunPlace place_of(int row, int own_column, int count) const {
        const Index first = group * args.c.batch_stride + column, bias = group * args.bias_batch_stride + column;
        return {first + row * args.c.row_stride + own_column, bias + own_column, row, column + own_column,
                row >= 0 && own_column < columns ? count : 0};
    }

    // ---- Elements ----

    TILEWISE_DEVICE void store(const Sums& sums, int tile) const {
        constexpr int kChunks = kColumns / 8, kChunkElements = 8;
        const int thread = own_thread();
        auto* const c = static_cast<typename Out::Storage*>(args.c.data) + group * args.c.batch_stride + column;
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int q = 0; q < kClasses; ++q) {
                const int position = tile * kRows + r * 64;
                sync();  // nobody reads the results before these any more
                put_results(sums[r][q], rows_of(position, q));
                put_rows(position, q);
                sync();
                TILEWISE_UNROLL
                for (int i = 0; i < (64 * kChunks + 127) / 128; ++i) {
                    const int piece = i * 128 + thread, row = piece / kChunks, chunk = piece - row * kChunks;
                    if (row >= 64 || chunk * kChunkElements >= columns) continue;
                    const int to = row_of(row);
                    if (to < 0) continue;
                    store_global<16>(c + to * args.c.row_stride + chunk * kChunkElements,
                                     load_shared<16>(staging + SharedAddress(row * kPitch + chunk * 16)));
                }
            }
        }
    }

    // A thread has sums of two rows of 64, eight apart, and of each group of 8 columns two neighbours.
    static TILEWISE_DEVICE int lane_row() { return own_thread() / 32 * 16 + own_thread() % 32 / 4; }
    static TILEWISE_DEVICE int lane_column() { return own_thread() % 4 * 2; }
    struct ResultRows {
        int upper, lower;  // of C
    };
    TILEWISE_DEVICE ResultRows rows_of(int position, int of_class) const {
        if constexpr (Chain::kFixed && Chain::kReadsTensors) {
            const int first = position + lane_row();
            return {places.row(first, of_class), places.row(first + 8, of_class)};
        } else {
            return {0, 0};  // nothing is read there
        }
    }

    // 64 rows of results in lines of kPitch bytes.
    TILEWISE_DEVICE void put_results(const float (&d)[kOwnSums], const ResultRows& rows) const {
        const int lane = own_thread() % 32, warp_row = own_thread() / 32 * 16;
        // stmatrix: lanes 0-7 give the lines of the upper left 8 x 8, then lower left, upper right, lower right.
        const SharedAddress lines = staging + SharedAddress((warp_row + lane % 16) * kPitch + lane / 16 * 16);
        TILEWISE_UNROLL
        for (int c = 0; c + 16 <= kColumns; c += 16) {
            const int i = c / 2;
            store_matrices(lines + SharedAddress(c * 2), {pack(d, i, rows.upper), pack(d, i + 2, rows.lower),
                                                          pack(d, i + 4, rows.upper), pack(d, i + 6, rows.lower)});
        }
        if constexpr (kColumns % 16 != 0) {
            constexpr int i = (kColumns - 8) / 2;
            const SharedAddress at = staging + SharedAddress(lane_row() * kPitch + i * 4 + lane % 4 * 4);
            store_shared<4>(at, Packet<4>{{pack(d, i, rows.upper)}});
            store_shared<4>(at + SharedAddress(8 * kPitch), Packet<4>{{pack(d, i + 2, rows.lower)}});
        }
    }
    // Sums i and the next, of group i / 4 of 8 columns.
    TILEWISE_DEVICE u32 pack(const float (&d)[kOwnSums], int i, int row) const {
        const float pair[2] = {d[i], d[i + 1]};
        float values[2];
        const RunPlace place = place_of(row, i / 4 * 8 + lane_column(), 2);
        if constexpr (Chain::kFixed && !Chain::kPlain) {
            HeldTerms<Chain, Out, 2> terms;
            hold_bias(args, place, terms);
            hold_tensors(args, place, terms);
            finish_in_registers<Chain, Out, Along::columns>(args, pair, place, values, terms);
        } else {
            finish_in_registers<Chain, Out, Along::columns>(args, pair, place, values);
        }
        return pack_pair<Out>(values[0], values[1]);
    }

    // ---- Sums as they are ----

    static constexpr int kHalf = kColumns / 2;  // of fp32, as long as all of them of 16 bits

    TILEWISE_DEVICE void finish_all(const Sums& sums, int tile) const {
        constexpr int kPasses = kRepeats * kClasses * 2;
        TILEWISE_ROLLED
        for (int pass = 0; pass < kPasses; ++pass) {
            sync();  // nobody reads the sums before these any more
            TILEWISE_UNROLL
            for (int p = 0; p < kPasses; ++p) {  // registers have no addresses: every pass has its own code
                if (p == pass) put_sums(sums[p / 2 / kClasses][p / 2 % kClasses], p % 2 * kHalf);
            }
            put_rows(tile * kRows + pass / 2 / kClasses * 64, pass / 2 % kClasses);
            sync();
            finish_half(pass % 2 * kHalf);
        }
    }
    TILEWISE_DEVICE void put_sums(const float (&d)[kOwnSums], int first_column) const {
        const SharedAddress line = staging + SharedAddress(lane_row() * kPitch);
        TILEWISE_UNROLL
        for (int g = 0; g < kColumns; g += 8) {
            if (g + 8 <= first_column || g >= first_column + kHalf) continue;
            const int own = g + lane_column() - first_column, i = g / 2;
            if (u32(own) >= u32(kHalf)) continue;  // the group in the middle has lanes of both halves
            store_shared_float2(line + SharedAddress(own * 4), d[i], d[i + 1]);
            store_shared_float2(line + SharedAddress(8 * kPitch + own * 4), d[i + 2], d[i + 3]);
        }
    }
    TILEWISE_DEVICE void finish_half(int first_column) const {
        constexpr int kRun = 4, kRuns = kHalf / kRun;
        TILEWISE_ROLLED
        for (int i = own_thread(); i < 64 * kRuns; i += 128) {
            const int row = i / kRuns, own = i % kRuns * kRun;
            const RunPlace place = place_of(row_of(row), first_column + own, kRun);
            if (place.count == 0) continue;
            float sums[kRun], values[kRun];
            load_shared_float4(staging + SharedAddress(row * kPitch + own * 4), sums);
            finish_run<Chain, Out, Along::columns>(args, sums, place, values);
            write_run<Out>(args, place, values);
        }
    }
};

}  // namespace tilewise::cuda::resident_filter_conv
