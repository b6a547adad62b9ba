// SPDX-License-Identifier: MIT
// The way of a warp's sums in patch_conv.hpp from registers to the output: rows of the tile are pixels anywhere in it, found
// through the row table (patch.hpp), and of a product's columns those of its groups lie side by side. Where the epilogue is
// known, or is nothing but alpha, elements are made in registers, put into a region of the warp's own and
// leave as whole accesses; else the sums of one matrix step at a time go through the region to the epilogue, in a rolled loop.
#pragma once
#include "../common/patch_conv_layout.hpp"
#include "../gpu/drain.hpp"
#include "../gpu/patch.hpp"

namespace tilewise::cuda {

template <class Config>
struct PatchDrain {
    using Chain = ChainOf<Config>;
    using Out = typename Config::Out;
    using Sum = SumOf<typename Config::A>;
    using Value = ValueOf<Sum, Out>;
    static constexpr int kLanes = 32, kStepM = 16, kStepN = 8, kMatrix = 8;
    static constexpr int kColumns = Config::tile_n / Config::wave_n;  // of a product
    static constexpr int kStepsM = Config::tile_m / Config::wave_m / kStepM, kStepsN = kColumns / kStepN;
    static constexpr int kPitch = patch_odd_chunks(kColumns * Out::bytes);
    static constexpr int kRows = patch_drain_rows(kStepsM * kStepM, kPitch), kSteps = kRows / kStepM;
    static constexpr int kAccessBytes = Config::vector_c * Out::bytes;
    static constexpr int kAccesses = kColumns * Out::bytes / kAccessBytes;  // of a row
    static_assert(kStepsM % kSteps == 0 && kColumns * Out::bytes % kAccessBytes == 0);

    using Sums = Sum[kStepsM][kStepsN][4];

    // Whether what the chain reads is held in registers before it is needed.
    static constexpr bool kHolds = Chain::kFixed && !Chain::kPlain && kIsAccess<Out, 2> && Config::vector_c > 1;
    using Terms = HeldTerms<typename ChooseType<Chain::kFixed, Chain, PlainChain>::type, Out, 2>;
    using Held = typename ChooseType<kHolds, Terms, ReadLater>::type;

    // A lane's accesses: at a time and in all. Where these are few, their rows are looked up once for all products of a tile.
    static constexpr int kTurns = (kRows * kAccesses + kLanes - 1) / kLanes, kAllTurns = kTurns * (kStepsM / kSteps);
    static constexpr bool kKeepsRows = kAllTurns <= 4;

    const KernelArgs& args;
    SharedAddress region, row_table;  // of this warp; of its first row

    // The rows of a lane's accesses: where they are in the tile, and in C from its first row on.
    struct Lane {
        PatchEntry rows[kKeepsRows ? kAllTurns : 1];
    };
    TILEWISE_DEVICE void find_rows(Lane& lane) const {
        if constexpr (kKeepsRows) {
            TILEWISE_UNROLL
            for (int turn = 0; turn < kAllTurns; ++turn) lane.rows[turn] = entry_of(turn);
        }
    }

    // Where the sums of a tile and class go.
    struct Target {
        u32 first_row;       // of C: that of the tile's first pixel
        PatchBounds inside;  // of the tile's rows
        char* first;         // its element of group 0, column 0
    };
    TILEWISE_DEVICE Target target(u32 first_row, const PatchBounds& inside) const {
        const u64 row_bytes = u64(u32(args.c.row_stride) * u32(Out::bytes));
        return {first_row, inside, static_cast<char*>(args.c.data) + first_row * row_bytes};
    }
    // The columns of a product: its first group, the first column and how many there are from it on.
    struct Columns {
        int group, first, count;
    };

    // Lane l has of every step rows l / 4 and l / 4 + 8, in each the columns 2 (l % 4) and the next.
    static TILEWISE_DEVICE int lane_row() { return lane_index() / 4; }
    static TILEWISE_DEVICE int lane_col() { return lane_index() % 4 * 2; }

    // Where the bias of a product's column is, and how many follow it. Groups have as many each as columns.
    TILEWISE_DEVICE RunPlace bias_place(const Columns& columns, int col) const {
        RunPlace place{};
        place.bias = columns.group * args.bias_batch_stride + columns.first + col;
        place.count = columns.count - col;
        return place;
    }
    // The bias of a lane's pair in every step along n.
    struct Bias {
        typename Terms::Access pairs[kStepsN];
    };
    TILEWISE_DEVICE Bias read_bias(const Columns& columns) const {
        Bias bias{};
        if constexpr (kHolds && Chain::kHasBias) {
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) {
                const RunPlace place = bias_place(columns, j * kStepN + lane_col());
                bias.pairs[j] = read_access<Out, 2>(args.bias, place.bias, place.count);
            }
        }
        return bias;
    }
    static TILEWISE_DEVICE bool is_made_in_registers(const KernelArgs& args) {
        if constexpr (Chain::kFixed && Chain::kReadsTensors && !kHolds) return false;
        constexpr int kRun = Config::vector_c == 1 ? 1 : 2;
        return finishes_in_registers<Chain, Out, Sum, kRun>(args);
    }

    // The bias was read before the sums were computed.
    TILEWISE_DEVICE void run(const Sums& sums, const Target& to, const Columns& columns, const Lane& lane,
                             const Bias& bias) const {
        if (!is_made_in_registers(args)) {
            finish_all(sums, to, columns);
        } else if constexpr (Config::vector_c == 1) {
            write_elements(sums, to, columns);
        } else if constexpr (Chain::kFixed && !Chain::kPlain) {
            write<false>(sums, to, columns, lane, bias);
        } else if (args.alpha == 1.0f) {
            write<true>(sums, to, columns, lane, bias);
        } else {
            write<false>(sums, to, columns, lane, bias);
        }
    }

private:
    // The lane's access number `turn` of all.
    static TILEWISE_DEVICE int place_of(int turn) { return turn % kTurns * kLanes + lane_index(); }
    TILEWISE_DEVICE PatchEntry entry_of(int turn) const {
        const int at = place_of(turn), row = turn / kTurns * kRows + at / kAccesses;
        if (kRows * kAccesses % kLanes != 0 && at >= kRows * kAccesses) return {kPatchNowhere, 0};
        return load_entry(row_table + row * kPatchEntryBytes);
    }

    TILEWISE_DEVICE RunPlace place_of(const PatchEntry& entry, const Target& to, const Columns& columns,
                                      int col) const {
        RunPlace place = bias_place(columns, col);
        place.row = Index(to.first_row) + entry.offset;
        place.at = place.row * args.c.row_stride + columns.group * args.c.batch_stride + columns.first + col;
        if (!to.inside.holds(entry.place)) place.count = 0;
        return place;
    }

    // A step of 16 rows and 8 columns: of each of a lane's two rows the two sums, and what they are combined with.
    struct Step {
        int i, j;
        Held held[2];
    };
    // `row` is i's in all sums: only some of their rows are put at a time.
    TILEWISE_DEVICE Step step_of(int row, int i, int j, const Target& to, const Columns& columns,
                                 const Bias& bias) const {
        Step step{i, j, {}};
        if constexpr (kHolds) {
            const int col = j * kStepN + lane_col();
            TILEWISE_UNROLL
            for (int half = 0; half < 2; ++half) {
                if constexpr (Chain::kReadsTensors) {
                    const int at = row * kStepM + half * kMatrix + lane_row();
                    const PatchEntry entry = load_entry(row_table + at * kPatchEntryBytes);
                    hold_tensors(args, place_of(entry, to, columns, col), step.held[half]);
                }
                if constexpr (Chain::kHasBias) step.held[half].bias = bias.pairs[j];
            }
        }
        return step;
    }
    // Two neighbours of a row.
    template <bool unscaled>
    TILEWISE_DEVICE Packet<2 * Out::bytes> pair_of(Sum first, Sum second, const Columns& columns, const Step& step,
                                                   int half) const {
        Value values[2] = {Value(first), Value(second)};
        if constexpr (!unscaled) {
            const Sum sums[2] = {first, second};
            const RunPlace place = bias_place(columns, step.j * kStepN + lane_col());
            finish_in_registers<Chain, Out, Along::columns>(args, sums, place, values, step.held[half]);
        }
        return pack_values<Out>(values);
    }
    template <bool unscaled>
    TILEWISE_DEVICE void put_step(const Sum (&sum)[4], const Columns& columns, const Step& step) const {
        const SharedAddress to =
            region + (step.i * kStepM + lane_row()) * kPitch + (step.j * kStepN + lane_col()) * int(Out::bytes);
        store_shared<2 * Out::bytes>(to, pair_of<unscaled>(sum[0], sum[1], columns, step, 0));
        store_shared<2 * Out::bytes>(to + kMatrix * kPitch, pair_of<unscaled>(sum[2], sum[3], columns, step, 1));
    }
    // Two steps, the second below the first or beside it.
    template <bool unscaled>
    TILEWISE_DEVICE void put_steps(const Sum (&one)[4], const Sum (&two)[4], const Columns& columns, const Step& first,
                                   const Step& second) const {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        if constexpr (Out::bytes == 2) {
            const u32 four[4] = {pair_of<unscaled>(one[0], one[1], columns, first, 0).words[0],
                                 pair_of<unscaled>(one[2], one[3], columns, first, 1).words[0],
                                 pair_of<unscaled>(two[0], two[1], columns, second, 0).words[0],
                                 pair_of<unscaled>(two[2], two[3], columns, second, 1).words[0]};
            const int half = lane_index() / kStepM, row = first.i * kStepM + lane_index() % kStepM;
            store_matrices(region + (first.i == second.i ? row * kPitch + (first.j + half) * kChunkBytes
                                                         : (row + half * kStepM) * kPitch + first.j * kChunkBytes),
                           four);
            return;
        }
#endif
        put_step<unscaled>(one, columns, first);
        put_step<unscaled>(two, columns, second);
    }
    template <bool unscaled>
    TILEWISE_DEVICE void put(const Sums& sums, const Target& to, const Columns& columns, const Bias& bias,
                             int first) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kSteps; ++i) {
            const Sum(&row)[kStepsN][4] = sums[first + i];
            TILEWISE_UNROLL
            for (int j = 0; j + 1 < kStepsN; j += 2) {
                put_steps<unscaled>(row[j], row[j + 1], columns, step_of(first + i, i, j, to, columns, bias),
                                    step_of(first + i, i, j + 1, to, columns, bias));
            }
        }
        if constexpr (kStepsN % 2 != 0) {
            constexpr int last = kStepsN - 1;
            TILEWISE_UNROLL
            for (int i = 0; i + 1 < kSteps; i += 2) {
                put_steps<unscaled>(sums[first + i][last], sums[first + i + 1][last], columns,
                                    step_of(first + i, i, last, to, columns, bias),
                                    step_of(first + i + 1, i + 1, last, to, columns, bias));
            }
            if constexpr (kSteps % 2 != 0) {
                const int i = kSteps - 1;
                put_step<unscaled>(sums[first + i][last], columns, step_of(first + i, i, last, to, columns, bias));
            }
        }
    }

    template <bool unscaled>
    TILEWISE_DEVICE void write(const Sums& sums, const Target& to, const Columns& columns, const Lane& lane,
                               const Bias& bias) const {
        const u32 column = u32(columns.group) * u32(args.c.batch_stride) + u32(columns.first);  // of all groups
        char* const base = to.first + u64(column) * Out::bytes;
        const u32 row_bytes = u32(args.c.row_stride) * Out::bytes;
        TILEWISE_UNROLL
        for (int first = 0; first < kStepsM; first += kSteps) {
            put<unscaled>(sums, to, columns, bias, first);
            sync_warp();
            TILEWISE_UNROLL
            for (int t = 0; t < kTurns; ++t) {
                const int turn = first / kSteps * kTurns + t, at = place_of(turn);
                const int row = at / kAccesses, access = at % kAccesses;
                const PatchEntry entry = kKeepsRows ? lane.rows[kKeepsRows ? turn : 0] : entry_of(turn);
                if (!to.inside.holds(entry.place) || access * Config::vector_c >= columns.count) continue;
                store_global<kAccessBytes>(base + u64(entry.offset) * row_bytes + access * kAccessBytes,
                                           load_shared<kAccessBytes>(region + row * kPitch + access * kAccessBytes));
            }
            sync_warp();
        }
    }

    // From registers: pixels of few channels, whose accesses would not be aligned.
    TILEWISE_DEVICE void write_elements(const Sums& sums, const Target& to, const Columns& columns) const {
        using Element = typename Out::Storage;
        Element* const base =
            reinterpret_cast<Element*>(to.first) + Index(columns.group) * args.c.batch_stride + columns.first;
        TILEWISE_UNROLL
        for (int i = 0; i < 2 * kStepsM; ++i) {
            const PatchEntry entry = load_entry(row_table + (i * kMatrix + lane_row()) * kPatchEntryBytes);
            if (!to.inside.holds(entry.place)) continue;
            Element* const row = base + u64(entry.offset) * u32(args.c.row_stride);
            TILEWISE_UNROLL
            for (int j = 0; j < 2 * kStepsN; ++j) {
                const int col = j / 2 * kStepN + lane_col() + j % 2;
                if (col >= columns.count) continue;
                const Sum sum[1] = {sums[i / 2][j / 2][i % 2 * 2 + j % 2]};
                Value value[1];
                finish_in_registers<Chain, Out, Along::columns>(args, sum, bias_place(columns, col), value);
                row[col] = element_of<Out>(value[0]);
            }
        }
    }

    TILEWISE_DEVICE void finish_all(const Sums& sums, const Target& to, const Columns& columns) const {
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
            finish_step(pass / kStepsN * kStepM, pass % kStepsN * kStepN, to, columns);
            sync_warp();
        }
    }
    TILEWISE_DEVICE void finish_step(int first_row, int first_col, const Target& to, const Columns& columns) const {
        constexpr int kRun = kStepM * kStepN / kLanes;  // neighbours along the columns
        static_assert(kRun == 4);
        const int row = lane_index() * kRun / kStepN, own = lane_index() * kRun % kStepN, col = first_col + own;
        const PatchEntry entry = load_entry(row_table + (first_row + row) * kPatchEntryBytes);
        if (!to.inside.holds(entry.place) || col >= columns.count) return;
        float words[kRun];
        load_shared_float4(region + (row * kStepN + own) * 4, words);
        Sum sums[kRun];
        TILEWISE_UNROLL
        for (int i = 0; i < kRun; ++i) sums[i] = __builtin_bit_cast(Sum, words[i]);
        const RunPlace place = place_of(entry, to, columns, col);
        Value values[kRun];
        finish_run<Chain, Out, Along::columns>(args, sums, place, values);
        write_run<Out>(args, place, values);
    }
    static TILEWISE_DEVICE float word(Sum sum) { return __builtin_bit_cast(float, sum); }
};

}  // namespace tilewise::cuda
