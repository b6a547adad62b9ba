// SPDX-License-Identifier: MIT
// The way of a warp's sums in halo_conv.hpp from registers to the output: rows of the tile are pixels anywhere in it, found
// through the row table (halo_patch.hpp), and of a product's columns those of its groups lie side by side. Where there is
// nothing to do but to multiply by alpha, elements are made in registers, put into a region of the warp's own and leave as
// whole accesses; else the sums of one matrix step at a time go through the region to the epilogue, in a rolled loop.
#pragma once
#include "../common/halo_plan.hpp"
#include "drain.hpp"
#include "halo_patch.hpp"

namespace tilewise::cuda {

template <class Config>
struct HaloDrain {
    using Out = typename Config::Out;
    using Sum = SumOf<typename Config::A>;
    using Value = ValueOf<Sum, Out>;
    static constexpr int kLanes = 32, kStepM = 16, kStepN = 8, kMatrix = 8;
    static constexpr int kColumns = Config::tile_n / Config::wave_n;  // of a product
    static constexpr int kStepsM = Config::tile_m / Config::wave_m / kStepM, kStepsN = kColumns / kStepN;
    static constexpr int kPitch = halo_odd_chunks(kColumns * Out::bytes);
    static constexpr int kRows = halo_drain_rows(kStepsM * kStepM, kPitch), kSteps = kRows / kStepM;
    static constexpr int kAccessBytes = Config::vector_c * Out::bytes;
    static constexpr int kAccesses = kColumns * Out::bytes / kAccessBytes;  // of a row
    static_assert(kStepsM % kSteps == 0 && kColumns * Out::bytes % kAccessBytes == 0);

    using Sums = Sum[kStepsM][kStepsN][4];

    const KernelArgs& args;
    SharedAddress region, row_table;  // of this warp; of its first row

    // Where the sums of one product and class go.
    struct Target {
        Index first_row;            // of C: that of the tile's first pixel
        HaloBounds inside;          // of the tile's rows
        int group;                  // the product's first
        int group_columns;          // columns of a group
        int first_column, columns;  // of the product; so many there are from the first on
    };

    TILEWISE_DEVICE void run(const Sums& sums, const Target& to) const {
        if (is_simple<Out, Sum>(args)) {
            write(sums, to);
        } else {
            finish_all(sums, to);
        }
    }

private:
    // Lane l has of every step rows l / 4 and l / 4 + 8, in each the columns 2 (l % 4) and the next.
    static TILEWISE_DEVICE int lane_row() { return lane_index() / 4; }
    static TILEWISE_DEVICE int lane_col() { return lane_index() % 4 * 2; }

    TILEWISE_DEVICE void put_pair(int row, int col, Sum first, Sum second) const {
        const Value values[2] = {finish_simple<Out>(args, first), finish_simple<Out>(args, second)};
        store_shared<2 * Out::bytes>(region + row * kPitch + col * Out::bytes, pack_values<Out>(values));
    }

    TILEWISE_DEVICE void write(const Sums& sums, const Target& to) const {
        char* const base = static_cast<char*>(args.c.data) +
                           (c_offset(args, to.group, to.first_row, 0) + to.first_column) * Out::bytes;
        const u32 row_bytes = u32(args.c.row_stride) * Out::bytes;
        TILEWISE_UNROLL
        for (int first = 0; first < kStepsM; first += kSteps) {
            TILEWISE_UNROLL
            for (int i = 0; i < kSteps; ++i) {
                TILEWISE_UNROLL
                for (int j = 0; j < kStepsN; ++j) {
                    const Sum(&sum)[4] = sums[first + i][j];
                    const int row = i * kStepM + lane_row(), col = j * kStepN + lane_col();
                    put_pair(row, col, sum[0], sum[1]);
                    put_pair(row + kMatrix, col, sum[2], sum[3]);
                }
            }
            sync_warp();
            TILEWISE_UNROLL
            for (int e = 0; e < kRows * kAccesses; e += kLanes) {
                const int at = e + lane_index(), row = at / kAccesses, access = at % kAccesses;
                if (kRows * kAccesses % kLanes != 0 && at >= kRows * kAccesses) continue;
                const HaloEntry entry = load_entry(row_table + (first * kStepM + row) * kHaloEntryBytes);
                if (!to.inside.holds(entry.place) || access * Config::vector_c >= to.columns) continue;
                store_global<kAccessBytes>(base + u64(entry.offset) * row_bytes + access * kAccessBytes,
                                           load_shared<kAccessBytes>(region + row * kPitch + access * kAccessBytes));
            }
            sync_warp();
        }
    }

    TILEWISE_DEVICE void finish_all(const Sums& sums, const Target& to) const {
        constexpr int row_bytes = kStepN * 4;
        TILEWISE_ROLLED
        for (int pass = 0; pass < kStepsM * kStepsN; ++pass) {
            TILEWISE_UNROLL
            for (int p = 0; p < kStepsM * kStepsN; ++p) {  // registers have no addresses: every pass has its own code
                if (p != pass) continue;
                const Sum(&sum)[4] = sums[p / kStepsN][p % kStepsN];
                const SharedAddress at = region + lane_row() * row_bytes + lane_col() * 4;
                store_shared_float2(at, word(sum[0]), word(sum[1]));
                store_shared_float2(at + kMatrix * row_bytes, word(sum[2]), word(sum[3]));
            }
            sync_warp();
            finish_step(pass / kStepsN * kStepM, pass % kStepsN * kStepN, to);
            sync_warp();
        }
    }
    TILEWISE_DEVICE void finish_step(int first_row, int first_col, const Target& to) const {
        TILEWISE_ROLLED
        for (int e = lane_index(); e < kStepM * kStepN; e += kLanes) {
            const int row = e / kStepN, col = first_col + e % kStepN;
            const HaloEntry entry = load_entry(row_table + (first_row + row) * kHaloEntryBytes);
            if (!to.inside.holds(entry.place) || col >= to.columns) continue;
            const Sum sum = __builtin_bit_cast(Sum, load_shared_float(region + e * 4));
            const int column = to.first_column + col, member = column / to.group_columns;
            const Index batch = to.group + member, at = column - member * to.group_columns;
            const Index c_row = to.first_row + entry.offset;
            store<Out>(args, finish<Out>(args, sum, batch, c_row, at), batch, c_row, at);
        }
    }
    static TILEWISE_DEVICE float word(Sum sum) { return __builtin_bit_cast(float, sum); }
};

}  // namespace tilewise::cuda
