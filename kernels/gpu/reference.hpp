// SPDX-License-Identifier: MIT
// Judges every element of a result where it lies: sums of the exact products, of their magnitudes and, where inputs
// are rounded, of their squares, in double by plain arithmetic; then the reference's own epilogue and bounds
// (../common/finish.hpp). Shares no arithmetic with the kernels it judges: no matrix instructions, one simple loop.
// Takes CheckParameters (../common/device_check.hpp) and the KernelArgs of the launch that is judged, C being its result.
// The factors are the matrices of a GEMM here; conv_reference.hpp has those of a convolution.
// On a host, who includes this says what the machine's functions are (tests/measure/gpu_twin.hpp).
// Any number of blocks of kCheckThreads; every thread keeps an account of its own, so that nothing depends on an order.
#pragma once
#include "../common/device_check.hpp"
#include "types.hpp"

namespace tilewise::gpu {

inline constexpr int kCheckDepth = 16;  // products of each element between two loads
inline constexpr int kCheckSide = 16;   // threads along a side of the tile
static_assert(kCheckSide * kCheckSide == kCheckThreads);
inline constexpr int kCheckEach = kCheckTile / kCheckSide;  // rows and columns of a thread
inline constexpr int kCheckLoads = kCheckTile * kCheckDepth / kCheckThreads;

// Odd, so that a column of depths falls on different banks.
using CheckStage = double[kCheckDepth][kCheckTile + 1];

TILEWISE_DEVICE u32 load_bits(const void* data, Index at, KernelDType type) {
    const int bytes = element_bytes(type);
    if (bytes == 4) return static_cast<const u32*>(data)[at];
    if (bytes == 2) return static_cast<const u16*>(data)[at];
    return static_cast<const u8*>(data)[at];
}

// Up to kCheckTile lines of an operand, rows of A or columns of B, and all their depths. Operands of other problems have the same
// members: `along_depth` says that neighbours of a line are neighbours in memory, and `at` is negative where the factor is 0.
struct CheckLines {
    const void* data;
    KernelDType type;
    Index first;  // element (line 0, depth 0)
    Index lines, depths;
    Index line_stride, depth_stride;

    TILEWISE_DEVICE bool along_depth() const { return depth_stride == 1; }
    TILEWISE_DEVICE Index at(Index line, Index depth) const {
        return first + line * line_stride + depth * depth_stride;
    }
};

struct MatrixOperands {
    static TILEWISE_DEVICE CheckLines a(const KernelArgs& args, KernelDType type, Index batch, Index row) {
        return {args.a.data,      type,   batch * args.a.batch_stride + row * args.a.row_stride,
                args.m - row,     args.k, args.a.row_stride,
                args.a.col_stride};
    }
    static TILEWISE_DEVICE CheckLines b(const KernelArgs& args, KernelDType type, Index batch, Index col) {
        return {args.b.data,      type,   batch * args.b.batch_stride + col * args.b.col_stride,
                args.n - col,     args.k, args.b.col_stride,
                args.b.row_stride};
    }
};

// Neighbours in memory go to neighbouring threads.
TILEWISE_DEVICE void place_of_load(bool along_depth, int load, int& line, int& depth) {
    const int at = thread_index() + load * kCheckThreads;
    line = along_depth ? at / kCheckDepth : at % kCheckTile;
    depth = along_depth ? at % kCheckDepth : at / kCheckTile;
}
template <class Lines>
TILEWISE_DEVICE void load_lines(const Lines& from, Index begin, u32 (&bits)[kCheckLoads]) {
    TILEWISE_UNROLL
    for (int i = 0; i < kCheckLoads; ++i) {
        int line, depth;
        place_of_load(from.along_depth(), i, line, depth);
        const bool inside = line < from.lines && begin + depth < from.depths;
        const Index at = inside ? from.at(line, begin + depth) : -1;
        bits[i] = at >= 0 ? load_bits(from.data, at, from.type) : 0u;  // zero in every type
    }
}
template <class Lines>
TILEWISE_DEVICE void stage_lines(const Lines& from, const u32 (&bits)[kCheckLoads], CheckStage& stage) {
    TILEWISE_UNROLL
    for (int i = 0; i < kCheckLoads; ++i) {
        int line, depth;
        place_of_load(from.along_depth(), i, line, depth);
        stage[depth][line] = decode(from.type, bits[i]);
    }
}

// One element has sum a*b, sum |a*b|, sum (a*b)^2.
struct CheckSums {
    double sum, magnitude, squares;
};

template <bool with_squares>
TILEWISE_DEVICE void add_products(const CheckStage& a, const CheckStage& b, CheckSums (&sums)[kCheckEach][kCheckEach]) {
    const int row = thread_index() / kCheckSide, col = thread_index() % kCheckSide;
    TILEWISE_UNROLL
    for (int depth = 0; depth < kCheckDepth; ++depth) {
        double left[kCheckEach], right[kCheckEach];
        TILEWISE_UNROLL
        for (int i = 0; i < kCheckEach; ++i) left[i] = a[depth][row + i * kCheckSide];
        TILEWISE_UNROLL
        for (int i = 0; i < kCheckEach; ++i) right[i] = b[depth][col + i * kCheckSide];
        TILEWISE_UNROLL
        for (int i = 0; i < kCheckEach; ++i) {
            TILEWISE_UNROLL
            for (int j = 0; j < kCheckEach; ++j) {
                CheckSums& s = sums[i][j];
                s.sum += left[i] * right[j];
                s.magnitude += magnitude_of(left[i]) * magnitude_of(right[j]);
                if constexpr (with_squares) {
                    const double product = left[i] * right[j];
                    s.squares += product * product;
                }
            }
        }
    }
}

// Rows of a channels-first convolution follow each other within an image only.
TILEWISE_DEVICE Index place_of_result(const KernelArgs& args, Index batch, Index row, Index col) {
    const Index image = args.c_image_rows == 0 ? 0 : quotient(row, args.c_image_rows);
    return batch * args.c.batch_stride + image * args.c_image_stride +
           (row - image * args.c_image_rows) * args.c.row_stride + col * args.c.col_stride;
}

// Everything after the sums, element by element.
TILEWISE_DEVICE void judge_element(const KernelArgs& args, const CheckParameters& check, CheckAccount& account,
                                   CheckSums sums, Index batch, Index row, Index col) {
    const Index at = place_of_result(args, batch, row, col);
    const FinishSteps& steps = check.steps;
    FinishTerms terms;
    if (steps.scale != KernelScale::none) {
        const bool per_row = steps.scale == KernelScale::row;
        terms.scale_a = double(args.scale_a[per_row ? row : 0]);
        terms.scale_b = double(args.scale_b[per_row ? col : 0]);
    }
    if (steps.beta != 0.0f) terms.c = decode(check.out, load_bits(check.original_c, at, check.out));
    if (args.bias) {
        terms.bias = decode(check.out, load_bits(args.bias, batch * args.bias_batch_stride + col, check.out));
    }
    for (int i = 0; i < kMaxKernelDTensors && args.d[i]; ++i) {
        terms.d[i] = decode(check.out, load_bits(args.d[i], at, check.out));
    }
    const Bounded expected = finished(steps, terms, accumulated(check.model, sums.sum, sums.magnitude, sums.squares));
    take_element(account, u64((batch * args.m + row) * args.n + col), check.out, expected,
                 load_bits(args.c.data, at, check.out));
}

template <bool with_squares, class Operands>
TILEWISE_DEVICE void judge_tile(const KernelArgs& args, const CheckParameters& check, CheckAccount& account,
                                Index batch, Index first_row, Index first_col) {
    TILEWISE_SHARED CheckStage stage_a, stage_b;
    const auto a = Operands::a(args, check.a, batch, first_row);
    const auto b = Operands::b(args, check.b, batch, first_col);
    CheckSums sums[kCheckEach][kCheckEach] = {};
    u32 bits_a[kCheckLoads], bits_b[kCheckLoads];
    load_lines(a, 0, bits_a);
    load_lines(b, 0, bits_b);
    TILEWISE_ROLLED
    for (Index begin = 0; begin < args.k; begin += kCheckDepth) {
        sync_block();
        stage_lines(a, bits_a, stage_a);
        stage_lines(b, bits_b, stage_b);
        sync_block();
        // The next are under way while these are multiplied; beyond the end all are zero and nothing is read.
        load_lines(a, begin + kCheckDepth, bits_a);
        load_lines(b, begin + kCheckDepth, bits_b);
        add_products<with_squares>(stage_a, stage_b, sums);
    }
    // Out of the registers, so that what follows, which is a lot of code, is there once.
    CheckSums parked[kCheckEach * kCheckEach];
    TILEWISE_UNROLL
    for (int i = 0; i < kCheckEach * kCheckEach; ++i) parked[i] = sums[i / kCheckEach][i % kCheckEach];
    TILEWISE_ROLLED
    for (int i = 0; i < kCheckEach * kCheckEach; ++i) {
        const Index row = first_row + thread_index() / kCheckSide + i / kCheckEach * kCheckSide;
        const Index col = first_col + thread_index() % kCheckSide + i % kCheckEach * kCheckSide;
        if (row < args.m && col < args.n) judge_element(args, check, account, parked[i], batch, row, col);
    }
}

template <bool with_squares, class Operands>
TILEWISE_DEVICE void judge_result(const KernelArgs& args) {
    griddep_wait();
    const CheckParameters& check = *static_cast<const CheckParameters*>(args.workspace);
    CheckAccount& account = check.accounts[Index(block_index()) * kCheckThreads + thread_index()];
    account = CheckAccount{};
    const Index tile_cols = (args.n + kCheckTile - 1) / kCheckTile, tile_rows = (args.m + kCheckTile - 1) / kCheckTile;
    TILEWISE_ROLLED
    for (Index tile = block_index(); tile < args.batch * tile_rows * tile_cols; tile += block_count()) {
        const Index line = tile / tile_cols, batch = line / tile_rows;
        judge_tile<with_squares, Operands>(args, check, account, batch, (line - batch * tile_rows) * kCheckTile,
                                           (tile - line * tile_cols) * kCheckTile);
    }
}

}  // namespace tilewise::gpu

// Two blocks share a multiprocessor where their sums fit into its registers.
#define TILEWISE_GPU_REFERENCE(with_squares, Operands)                                          \
    extern "C" __global__ void __launch_bounds__(tilewise::kCheckThreads, with_squares ? 1 : 2) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {                    \
        tilewise::gpu::judge_result<with_squares, tilewise::gpu::Operands>(args);               \
    }
