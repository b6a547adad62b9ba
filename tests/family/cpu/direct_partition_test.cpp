// SPDX-License-Identifier: MIT
#include "family/cpu/direct_partition.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

Problem random_problem(Random& random, Op op) {
    Problem p;
    p.op = op;
    ConvShape& s = p.conv;
    s.n = random.between(1, 3);
    s.g = random.between(2, 40);
    s.c = s.g * random.between(1, 3), s.k = s.g * random.between(1, 3);
    const int rank = static_cast<int>(random.between(1, 3));
    s.in = s.filter = s.stride = s.dilation = filled(rank, 1);
    s.pad_before = s.pad_after = filled(rank, 0);
    for (int i = 0; i < rank; ++i) {
        s.in[i] = random.between(3, 30);
        s.filter[i] = random.between(1, 3);
        s.stride[i] = random.between(1, 3);
    }
    return p;
}

// Lines of the output tensor, as the kernels count them; backward weight has one.
std::int64_t lines_of(const Problem& p) {
    if (p.op == Op::conv_bwd_weight) return 1;
    const Extents size = p.op == Op::conv_bwd_data ? p.conv.in : output_size(p.conv);
    std::int64_t pixels = p.conv.n;
    for (int i = 0; i < size.rank; ++i) pixels *= size[i];
    return pixels / size[size.rank - 1];
}

// Every line and channel belongs to exactly one part (of each part of the reduction), and channels are cut between vectors.
TEST(DirectPartition, CoversEveryLineAndChannelOnce) {
    Random random(11);
    for (int i = 0; i < 300; ++i) {
        constexpr Op kOps[] = {Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight};
        const Problem p = random_problem(random, kOps[i % 3]);
        KernelConfig c;
        c.op = p.op;
        c.specialization = Specialization::depthwise;
        c.warp_tile = {7, 16 << random.between(0, 2), 1};
        c.split_k = p.op == Op::conv_bwd_weight && random.chance(50) ? 3 : 1;
        const CpuParts parts = direct_partition(p, c, static_cast<int>(random.between(1, 16)));
        std::map<std::array<std::int64_t, 3>, int> seen;
        for (const KernelPart& part : parts.run) {
            EXPECT_EQ(part.n_begin % c.warp_tile.n, 0);
            for (Index m = part.m_begin; m < part.m_end; ++m) {
                for (Index n = part.n_begin; n < part.n_end; ++n) ++seen[{m, n, part.k_part}];
            }
        }
        const std::int64_t channels = p.op == Op::conv_bwd_data ? p.conv.c : p.conv.k;
        ASSERT_EQ(static_cast<std::int64_t>(seen.size()), lines_of(p) * channels * c.split_k);
        for (const auto& entry : seen) ASSERT_EQ(entry.second, 1);
        EXPECT_EQ(parts.reduce.empty(), c.split_k == 1);
    }
}

TEST(DirectPartition, LargeWorkIsSharedAmongAllThreads) {
    Random random(3);
    Problem p = random_problem(random, Op::conv_fwd);
    p.conv.in = filled(2, 112);
    p.conv.filter = filled(2, 3), p.conv.stride = p.conv.dilation = filled(2, 1);
    p.conv.pad_before = p.conv.pad_after = filled(2, 1);
    p.conv.g = p.conv.c = p.conv.k = 96;
    KernelConfig c;
    c.op = p.op;
    c.warp_tile = {7, 32, 1};
    EXPECT_EQ(direct_partition(p, c, 8).run.size(), 8u);
    p.conv.in = filled(2, 4);
    EXPECT_EQ(direct_partition(p, c, 8).threads, 1);
}

}  // namespace
}  // namespace tilewise
