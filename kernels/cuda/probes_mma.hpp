// SPDX-License-Identifier: MIT
// Probes of what a warp does with matrices in registers: ldmatrix, stmatrix, mma.sync, and the conversions to 16 bits. One
// warp each. A slot is a half of a register of a lane.
#pragma once
#include "probe_table.hpp"

namespace tilewise::cuda {

inline constexpr int kMatrixSize = 8, kMatrixElements = 64, kRowBytes = 16;

// Row r of matrix m lies at chunk 8m + r of shared memory, whose address lane 8m + r gives.
TILEWISE_DEVICE u32 matrix_place(int element) {
    const int matrix = element / kMatrixElements, row = element / kMatrixSize % kMatrixSize;
    return u32(matrix << 8 | row << 4 | element % kMatrixSize);
}

// table[lane][register][half] = (matrix, row, column) that was loaded there, a hex digit each.
template <int count, bool trans>
struct LoadMatricesProbe {
    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const SharedAddress shared = shared_start();
        const int lane = lane_index();
        fill_shared(shared, 4 * kMatrixElements, [](int i) { return matrix_place(i); });
        sync_block();
        u32 got[count];
        load_matrices<trans>(shared + lane * kRowBytes, got);
        TILEWISE_UNROLL
        for (int i = 0; i < count; ++i) {
            table_of(args)[(lane * count + i) * 2] = got[i] & 0xffffu;
            table_of(args)[(lane * count + i) * 2 + 1] = got[i] >> 16;
        }
    }
};

// table[lane][register][half] = (matrix, row, column) where it was stored.
struct StoreMatricesProbe {
    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const SharedAddress shared = shared_start();
        const int lane = lane_index();
        fill_shared(shared, 4 * kMatrixElements, [](int) { return 0xffffu; });
        sync_block();
        u32 slots[4];
        TILEWISE_UNROLL
        for (u32 i = 0; i < 4; ++i) slots[i] = (lane * 8 + i * 2) | (lane * 8 + i * 2 + 1) << 16;
        store_matrices(shared + lane * kRowBytes, slots);
        sync_block();
        for (int i = lane; i < 4 * kMatrixElements; i += 32) {
            const u32 slot = load_shared_half(shared + i * 2);
            if (slot < 4 * kMatrixElements) table_of(args)[slot] = matrix_place(i);
        }
    }
};

// table[lane]: (row, column) of D's 4 registers, (row, k) of A's 8 slots, (k, column) of B's 4 slots, a hex digit each.
// Taken as given: the first column of A (rows by lane / 4 in registers 0 and 1), the first row of A (k by lane % 4 and half in
// registers 0 and 2), the first row of B (columns by lane / 4 in register 0).
template <class T>
struct MultiplyProbe {
    static constexpr int kSlotsA = 8, kSlotsB = 4, kSlots = 4 + kSlotsA + kSlotsB, kLanes = 32;

    static TILEWISE_DEVICE u32 pair(int first, int second) { return pack_pair<T>(float(first), float(second)); }
    // Register i of a fragment with a one in one slot (numbered through all lanes) and zeros elsewhere.
    static TILEWISE_DEVICE u32 one_hot(int slot, int slots, int i) {
        const int mine = slot - lane_index() * slots - i * 2;
        return pair(mine == 0, mine == 1);
    }
    static TILEWISE_DEVICE void multiply(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
        float sum[4] = {};
        sync_warp();  // lanes part ways where they look at the sums
        multiply_add<T, T>(sum, a, b[0], b[1]);
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) d[i] = int(sum[i]);
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const int lane = lane_index();
        u32* const table = table_of(args);
        const u32 ones = pair(1, 1);
        int row[4], column[4], d[4];
        const bool first = lane % 4 == 0;
        multiply(row, {pair(first ? lane / 4 + 1 : 0, 0), pair(first ? lane / 4 + 9 : 0, 0), 0, 0}, {ones, ones});
        multiply(column, {ones, ones, ones, ones}, {pair(first ? lane / 4 + 1 : 0, 0), 0});
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) table[lane * kSlots + i] = u32(--row[i] << 4 | --column[i]);
        const bool top = lane < 4;
        const u32 low = top ? pair(2 * lane + 1, 2 * lane + 2) : 0, high = top ? pair(2 * lane + 9, 2 * lane + 10) : 0;
        for (int slot = 0; slot < kLanes * kSlotsB; ++slot) {
            multiply(d, {low, 0, high, 0}, {one_hot(slot, kSlotsB, 0), one_hot(slot, kSlotsB, 1)});
            u32* const to = table + slot / kSlotsB * kSlots + 4 + kSlotsA + slot % kSlotsB;
            TILEWISE_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (d[i] != 0) *to = u32((d[i] - 1) << 4 | column[i]);
            }
        }
        sync_block();
        u32 k[2];  // one more than that of each slot of B
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            const u32* const mine = table + lane * kSlots + 4 + kSlotsA + i * 2;
            k[i] = pair(int(mine[0] >> 4) + 1, int(mine[1] >> 4) + 1);
        }
        for (int slot = 0; slot < kLanes * kSlotsA; ++slot) {
            multiply(d,
                     {one_hot(slot, kSlotsA, 0), one_hot(slot, kSlotsA, 1), one_hot(slot, kSlotsA, 2),
                      one_hot(slot, kSlotsA, 3)},
                     k);
            u32* const to = table + slot / kSlotsA * kSlots + 4 + slot % kSlotsA;
            TILEWISE_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (d[i] != 0) *to = u32(row[i] << 4 | (d[i] - 1));
            }
        }
    }
};

// The same of fp64, whose slots are registers: table[lane]: (row, column) of D's 4, (row, k) of A's 8, (k, column) of B's 4.
// Taken as given: the first column of A (rows by lane / 4 in registers 0 and 1), the first row of A (k by lane % 4 in registers 0,
// 2, 4 and 6), the first row of B (columns by lane / 4 in register 0).
struct MultiplyFp64Probe {
    static constexpr int kSlotsA = 8, kSlotsB = 4, kSlots = 4 + kSlotsA + kSlotsB, kLanes = 32;

    template <int kOwn>
    static TILEWISE_DEVICE void one_hot(int slot, double (&to)[kOwn]) {
        TILEWISE_UNROLL
        for (int i = 0; i < kOwn; ++i) to[i] = slot == lane_index() * kOwn + i ? 1 : 0;
    }
    static TILEWISE_DEVICE void multiply(int (&d)[4], const double (&a)[kSlotsA], const double (&b)[kSlotsB]) {
        double sum[4] = {};
        sync_warp();  // lanes part ways where they look at the sums
        multiply_add_fp64(sum, a, b);
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) d[i] = int(sum[i]);
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const int lane = lane_index();
        u32* const table = table_of(args);
        int row[4], column[4], d[4];
        const bool first = lane % 4 == 0, top = lane < 4;
        const double number = first ? lane / 4 + 1 : 0;
        multiply(row, {number, first ? number + 8 : 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1});
        multiply(column, {1, 1, 1, 1, 1, 1, 1, 1}, {number, 0, 0, 0});
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) table[lane * kSlots + i] = u32(--row[i] << 4 | --column[i]);
        const double k = lane + 1;
        const double rows[kSlotsA] = {top ? k : 0, 0, top ? k + 4 : 0, 0, top ? k + 8 : 0, 0, top ? k + 12 : 0, 0};
        for (int slot = 0; slot < kLanes * kSlotsB; ++slot) {
            double b[kSlotsB];
            one_hot(slot, b);
            multiply(d, rows, b);
            u32* const to = table + slot / kSlotsB * kSlots + 4 + kSlotsA + slot % kSlotsB;
            TILEWISE_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (d[i] != 0) *to = u32((d[i] - 1) << 4 | column[i]);
            }
        }
        sync_block();
        double columns[kSlotsB];  // one more than the k of each
        TILEWISE_UNROLL
        for (int i = 0; i < kSlotsB; ++i) columns[i] = (table[lane * kSlots + 4 + kSlotsA + i] >> 4) + 1;
        for (int slot = 0; slot < kLanes * kSlotsA; ++slot) {
            double a[kSlotsA];
            one_hot(slot, a);
            multiply(d, a, columns);
            u32* const to = table + slot / kSlotsA * kSlots + 4 + slot % kSlotsA;
            TILEWISE_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (d[i] != 0) *to = u32(row[i] << 4 | (d[i] - 1));
            }
        }
    }
};

// A holds n fp32 values. table[value]: bf16 alone, in the low and in the high half of a pair; then fp16 likewise.
struct ConvertProbe {
    static constexpr int kForms = 6;
    template <class T>
    static TILEWISE_DEVICE void convert(float x, u32* to) {
        to[0] = T::from_float(x);
        to[1] = pack_pair<T>(x, 0.0f) & 0xffffu;
        to[2] = pack_pair<T>(0.0f, x) >> 16;
    }
    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        for (int i = thread_index(); i < args.n; i += block_threads()) {
            const float x = static_cast<const float*>(args.a.data)[i];
            convert<Bf16>(x, table_of(args) + i * kForms);
            convert<Fp16>(x, table_of(args) + i * kForms + 3);
        }
    }
};

}  // namespace tilewise::cuda
