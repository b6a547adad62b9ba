// SPDX-License-Identifier: MIT
// Probes of the warpgroup products: what the sums' registers hold, and where in shared memory an operand's elements are
// read. One warpgroup each.
#pragma once
#include "hopper.hpp"
#include "probe_table.hpp"

namespace tilewise::cuda {

inline constexpr int kProbeLineBytes = 128, kProbeLine = kProbeLineBytes / 2, kProbeBlockBytes = 8 * kProbeLineBytes;
inline constexpr int kNoLeading = 16;  // where a descriptor's `leading` has no meaning
inline constexpr int kProductRows = 64, kProductDepth = 16;

// d = a * b, of what all threads have written to shared memory; after it they may write there again.
template <class T, int n, int trans_a, int trans_b>
TILEWISE_DEVICE void multiply_shared(float (&d)[n / 2], u64 a, u64 b) {
    async_proxy_fence();
    sync_block();
    TILEWISE_UNROLL
    for (int i = 0; i < n / 2; ++i) {
        d[i] = 0;
        pin(d[i]);
    }
    wgmma_fence();
    wgmma<T, T, n, trans_a, trans_b>(d, a, b, false);
    wgmma_commit();
    wgmma_wait<0>();
    TILEWISE_UNROLL
    for (int i = 0; i < n / 2; ++i) pin(d[i]);
    sync_block();
}

// table[thread][register] = row << 8 | column. Both operands lie along k, every line filled with one value, so that neither
// swizzle nor k matter. Taken as given: line r of A is row r, line c of B is column c.
template <class T, int n>
struct SumsProbe {
    static constexpr int kBytesA = kProductRows * kProbeLineBytes;

    template <class FillA, class FillB>
    static TILEWISE_DEVICE void multiply(float (&d)[n / 2], FillA&& fill_a, FillB&& fill_b) {
        const SharedAddress a = shared_start(), b = a + kBytesA;
        fill_shared(a, kProductRows * kProbeLine, [&](int i) { return T::from_float(float(fill_a(i / kProbeLine))); });
        fill_shared(b, n * kProbeLine, [&](int i) { return T::from_float(float(fill_b(i / kProbeLine))); });
        multiply_shared<T, n, 0, 0>(d, operand_at(a, kNoLeading, kProbeBlockBytes),
                                    operand_at(b, kNoLeading, kProbeBlockBytes));
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const auto one = [](int) { return 1; };
        const auto number = [](int line) { return line; };
        u32* const mine = table_of(args) + thread_index() * (n / 2);
        float d[n / 2];
        multiply(d, number, one);
        TILEWISE_UNROLL
        for (int i = 0; i < n / 2; ++i) mine[i] = u32(d[i]) / kProductDepth << 8;
        multiply(d, one, number);
        TILEWISE_UNROLL
        for (int i = 0; i < n / 2; ++i) mine[i] |= u32(d[i]) / kProductDepth;
    }
};

// table[row of A or column of B][k] = byte, from the operand's start, that the element is read from; k goes through `steps`
// products. The operand's elements hold their own numbers, a digit of 8 bits at a time, and the other operand has a single
// one, in its first line, which is not swizzled. Taken as given: that line is along k in order; where SumsProbe finds row
// 0 and column 0 of the sums.
template <class T, bool is_b, bool along_k, int steps, int leading_bytes, int stride_bytes>
struct OperandProbe {
    static constexpr int kN = is_b ? 128 : 16, kColumns = steps * kProductDepth;
    static constexpr int kBytes = 65536, kOtherBytes = kProductRows * kProbeLineBytes, kDigits = 256;
    static constexpr int kStepBytes = along_k ? kProductDepth * 2 : kProductDepth / 8 * stride_bytes;
    static constexpr int kTrans = along_k ? 0 : 1;

    static TILEWISE_DEVICE void multiply(float (&d)[kN / 2], SharedAddress operand, SharedAddress other) {
        const u64 asked = operand_at(operand, leading_bytes, stride_bytes);
        const u64 single = operand_at(other, kNoLeading, kProbeBlockBytes);
        if constexpr (is_b) {
            multiply_shared<T, kN, 0, kTrans>(d, single, asked);
        } else {
            multiply_shared<T, kN, kTrans, 0>(d, asked, single);
        }
    }

    // Calls f(row of A or column of B, sum) for those this thread has in the single one's column or row.
    template <class F>
    static TILEWISE_DEVICE void visit(const float (&d)[kN / 2], F&& f) {
        const int thread = thread_index();
        if constexpr (is_b) {
            if (thread >= 4) return;
            TILEWISE_UNROLL
            for (int j = 0; j < kN / 8; ++j) {
                f(j * 8 + thread * 2, d[j * 4]);
                f(j * 8 + thread * 2 + 1, d[j * 4 + 1]);
            }
        } else {
            if (thread % 4 != 0) return;
            const int row = thread / 32 * 16 + thread % 32 / 4;
            f(row, d[0]);
            f(row + 8, d[2]);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const SharedAddress operand = shared_start(), other = operand + kBytes;
        u32* const table = table_of(args);
        float d[kN / 2];
        fill_shared(other, kOtherBytes / 2, [](int) { return 0; });
        TILEWISE_ROLLED
        for (int weight = 1; weight <= kDigits; weight *= kDigits) {
            fill_shared(operand, kBytes / 2, [&](int i) { return T::from_float(float(i / weight % kDigits)); });
            TILEWISE_ROLLED
            for (int k = 0; k < kColumns; ++k) {
                const SharedAddress single = other + k % kProductDepth * 2;
                if (thread_index() == 0) store_shared_half(single, T::from_float(1.0f));
                multiply(d, operand + k / kProductDepth * kStepBytes, other);
                if (thread_index() == 0) store_shared_half(single, 0);
                visit(d, [&](int line, float sum) {
                    u32& to = table[line * kColumns + k];
                    to = (weight == 1 ? 0 : to) + u32(sum) * weight * 2;
                });
            }
        }
    }
};

}  // namespace tilewise::cuda
