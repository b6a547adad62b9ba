// SPDX-License-Identifier: MIT
// Random problems that are possible and in the form the parser gives: a packed stride is left out, not written.
#pragma once

#include <algorithm>
#include <ostream>

#include "base/random.hpp"
#include "problem/facts.hpp"
#include "problem/problem.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {

// How a failed comparison shows a problem.
inline void PrintTo(const Problem& problem, std::ostream* out) { *out << print_problem(problem); }

inline void randomize_types(Random& random, Problem& p) {
    std::vector<DType> inputs = {DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::bf8};
    if (p.op == Op::gemm || p.op == Op::conv_fwd) inputs.push_back(DType::int8);
    p.dtype_a = p.dtype_b = random.pick(inputs);
    if (is_8bit_float(p.dtype_a) && random.chance(50)) p.dtype_b = random.chance(50) ? DType::fp8 : DType::bf8;
    p.dtype_out = default_output(p.dtype_a);
    if (random.chance(40)) {
        do p.dtype_out = static_cast<DType>(random.between(0, 6));
        while (!is_output_of(p.dtype_a, p.dtype_out));
    }
}

inline void randomize_options(Random& random, Problem& p) {
    if (random.chance(40)) {
        for (std::int64_t i = random.between(1, 4); i > 0; --i) {
            const auto op = static_cast<EpilogueOp>(random.between(0, 10));
            const bool no_bias = op == EpilogueOp::bias && (has_bias(p) || p.op == Op::conv_bwd_weight);
            if (!no_bias) p.epilogue.push_back(op);
        }
    }
    if (random.chance(30)) {
        for (std::int64_t i = random.between(1, 4); i > 0 && d_count(p) < kMaxDTensors; --i)
            p.epilogue.push_back(random.chance(50) ? EpilogueOp::add : EpilogueOp::mul);
    }
    p.beta = random.chance(30);
    p.packed_b = p.op == Op::gemm && random.chance(20);
    p.scale = static_cast<Scale>(random.between(0, p.op == Op::gemm ? 2 : 1));
    p.math = static_cast<Math>(random.between(0, p.dtype_a == DType::fp32 ? 3 : 1));
    p.align_bytes = random.chance(50) ? kDefaultAlignBytes : std::int64_t{1} << random.between(0, 12);
    p.deterministic = random.chance(30);
    if (random.chance(40)) p.workspace_bytes = random.between(0, 5000) << random.between(0, 40);
}

inline void randomize_gemm(Random& random, Problem& p, std::int64_t largest) {
    GemmShape& s = p.gemm;
    p.layout = static_cast<Layout>(random.between(static_cast<int>(Layout::rcr), static_cast<int>(Layout::ccc)));
    s.m = random.between(1, largest);
    s.n = random.between(1, largest);
    s.k = random.between(1, largest);
    if (random.chance(50)) s.batch = random.between(2, 9);
    for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (random.chance(30)) s.leading[at] = contiguous_length(p, i) + random.between(1, 64);
        if (s.batch == 1 || !random.chance(30)) continue;
        const std::int64_t packed = batch_stride(p, i);
        s.batch_stride[at] = i < 2 && random.chance(50) ? 0 : packed + random.between(1, 64);
    }
}

inline void randomize_conv(Random& random, Problem& p, std::int64_t largest) {
    ConvShape& s = p.conv;
    const int rank = static_cast<int>(random.between(1, kMaxSpatialDims));
    p.layout = static_cast<Layout>(static_cast<int>(random.chance(50) ? Layout::nwgc : Layout::ngcw) + rank - 1);
    s.n = random.between(1, largest);
    s.g = random.chance(50) ? 1 : random.between(2, largest);
    s.c = s.g * random.between(1, largest);
    s.k = s.g * random.between(1, largest);
    s.in = s.filter = s.stride = s.dilation = s.pad_before = s.pad_after = filled(rank, 0);
    const bool symmetric = random.chance(50);
    for (int i = 0; i < rank; ++i) {
        s.in[i] = random.between(1, 2 * largest);
        s.stride[i] = random.between(1, 3);
        s.dilation[i] = random.between(1, 3);
        s.pad_before[i] = random.between(0, 3);
        s.pad_after[i] = symmetric ? s.pad_before[i] : random.between(0, 3);
        const std::int64_t padded = s.in[i] + s.pad_before[i] + s.pad_after[i];
        s.filter[i] = random.between(1, std::min<std::int64_t>(5, (padded - 1) / s.dilation[i] + 1));
    }
}

// Strides, dilations and pads of about 2^bits, around an image, a filter and outputs that stay small.
inline void stretch_window(Random& random, ConvShape& s, int i, int bits = 32) {
    const auto far = [&] { return (std::int64_t{1} << bits) + random.between(-2, 2); };
    if (random.chance(60)) s.stride[i] = far();
    if (random.chance(60)) s.dilation[i] = far();
    const std::int64_t reach = (s.filter[i] - 1) * s.dilation[i];
    std::int64_t &before = s.pad_before[i], &after = s.pad_after[i];
    before = random.between(0, s.filter[i] - 1) * s.dilation[i] + random.between(0, 2);
    after = std::max<std::int64_t>(0, reach - before) + random.between(0, 2);
    (random.chance(50) ? before : after) += random.between(0, 2) * s.stride[i];
}

// Every size is at most about `largest`, so that a test may count elements one by one.
inline Problem random_problem(Random& random, std::int64_t largest = 60) {
    Problem p;
    p.op = random.pick(kAllOps);
    randomize_types(random, p);
    if (p.op == Op::gemm) {
        randomize_gemm(random, p, largest);
    } else {
        randomize_conv(random, p, largest);
    }
    randomize_options(random, p);
    return p;
}

// Whole multiples of what kernels like, and nothing unusual asked for: most archs have a kernel for it.
inline Problem friendly_problem(Random& random) {
    Problem p;
    p.op = random.pick(kAllOps);
    const std::vector<DType> types = {DType::fp32, DType::fp16, DType::bf16};
    p.dtype_a = p.dtype_b = p.dtype_out = random.pick(types);
    p.align_bytes = 64;
    if (p.op == Op::gemm) {
        p.gemm.m = 64 * random.between(1, 16);
        p.gemm.n = 64 * random.between(1, 16);
        p.gemm.k = 64 * random.between(1, 16);
        return p;
    }
    randomize_conv(random, p, 4);
    p.layout = channels_last(p.conv.in.rank);
    p.conv.g = random.chance(50) ? 1 : 4;
    p.conv.c = p.conv.g * 64 * random.between(1, 4);
    p.conv.k = p.conv.g * 64 * random.between(1, 4);
    return p;
}

}  // namespace tilewise
