// SPDX-License-Identifier: MIT
// Where gathered convolutions read, against the definition of each direction, element by element.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>

#include "base/random.hpp"
#include "kernels/common/channel_chunks.hpp"
#include "kernels/gpu/gather_source.hpp"
#include "problem/random_problem.hpp"
#include "run/executable.hpp"

namespace tilewise::gpu {
namespace {

struct Byte {
    static constexpr int bytes = 1;
};

// Addresses are offsets from here; nothing is read.
const char* const kData = reinterpret_cast<const char*>(std::uintptr_t{1} << 40);

// Those for wide kernels reach farther than 32 bits do.
Problem conv_problem(Random& random, Op op, int ndim, bool wide) {
    Problem p;
    p.op = op;
    do {
        randomize_conv(random, p, 6);
        for (int d = 0; wide && d < p.conv.in.rank; ++d) stretch_window(random, p.conv, d);
    } while (p.conv.in.rank != ndim || check_problem(p));
    return p;
}

struct Place {
    Index at[kMaxKernelDims];
};
Place unfold(Index index, const Index (&size)[kMaxKernelDims]) {
    Place place;
    for (int d = kMaxKernelDims - 1; d >= 0; --d) place.at[d] = index % size[d], index /= size[d];
    return place;
}
Index fold(const Place& place, const Index (&size)[kMaxKernelDims]) {
    return (place.at[0] * size[1] + place.at[1]) * size[2] + place.at[2];
}
Index product(const Index (&size)[kMaxKernelDims]) { return size[0] * size[1] * size[2]; }

// Where x is for an output pixel, a tap and a channel; -1 in the padding.
Index input_at(const KernelConv& conv, Index row, Index tap, Index channel) {
    const Index pixels = product(conv.out);
    const Place out = unfold(row % pixels, conv.out), filter = unfold(tap, conv.filter);
    Place in;
    for (int d = 0; d < kMaxKernelDims; ++d) {
        in.at[d] = out.at[d] * conv.stride[d] + filter.at[d] * conv.dilation[d] - conv.pad[d];
        if (in.at[d] < 0 || in.at[d] >= conv.in[d]) return -1;
    }
    return row / pixels * conv.x.image_stride + fold(in, conv.in) * conv.x.pixel_stride +
           channel * conv.x.channel_stride;
}

template <int ndim, bool wide>
void expect_forward(Random& random) {
    using Count = typename Counting<wide>::Count;
    const KernelConv conv = problem_args(conv_problem(random, Op::conv_fwd, ndim, wide)).conv;
    const Walk walk = forward_walk(conv);
    // Channels may be counted in whole chunks; those that fill one up do not exist.
    const Index counted = random.between(0, 1) == 0 ? conv.c : whole_chunks(conv.c, 1);
    const Patches<Byte, ndim, false, 0, wide> rows(kData, conv.x, walk, conv.images, conv.c, counted, {});
    const Patches<Byte, ndim, true, 0, wide> columns(kData, conv.x, walk, conv.images, conv.c, counted, {});
    const Index count = conv.images * product(conv.out), depth = product(conv.filter) * counted;
    for (int i = 0; i < 300; ++i) {
        const Index row = random.between(0, count + 3), k = random.between(0, depth + 3), channel = k % counted;
        const Index expected = row < count && k < depth ? input_at(conv, row, k / counted, channel) : -1;
        const auto outer = rows.outer(Count(row));
        const auto inner = rows.inner(Count(k));
        ASSERT_EQ(rows.is_inside(outer, inner), expected >= 0) << row << ", " << k;
        ASSERT_EQ(columns.is_inside(columns.outer(Count(k)), columns.inner(Count(row))), expected >= 0);
        const Index left = std::clamp<Index>(conv.c - channel, 0, kChunkBytes);
        ASSERT_EQ(rows.valid(outer, inner), expected >= 0 ? left : 0) << row << ", " << k;
        if (expected < 0 || left == 0) continue;
        ASSERT_EQ(rows.address(outer, inner) - kData, expected) << row << ", " << k;
        ASSERT_EQ(columns.address(columns.outer(Count(k)), columns.inner(Count(row))) - kData, expected);
    }
}

template <bool wide>
void expect_forward_of_all(Random random) {
    for (int i = 0; i < 100; ++i) {
        expect_forward<1, wide>(random), expect_forward<2, wide>(random), expect_forward<3, wide>(random);
    }
}

TEST(CudaGatherSource, PatchesAreWhatTheForwardPassReads) { expect_forward_of_all<false>(Random(5)); }
TEST(CudaGatherSource, WidePatchesAreWhatTheForwardPassReads) { expect_forward_of_all<true>(Random(5)); }

// A filter's chunks lie one after the other in memory, those of a tap filled up.
TEST(CudaGatherSource, FiltersAreWhatTheForwardPassMultiplies) {
    Random random(6);
    for (int i = 0; i < 200; ++i) {
        const KernelConv conv = problem_args(conv_problem(random, Op::conv_fwd, 2, false)).conv;
        const Index taps = product(conv.filter), counted = whole_chunks(conv.c, 1);
        const Filters<Byte> filters(kData, conv, taps, counted, {});
        for (int j = 0; j < 50; ++j) {
            const Index filter = random.between(0, conv.k + 2), k = random.between(0, taps * counted + 2);
            const Index tap = k / counted, channel = k % counted;
            const bool exists = filter < conv.k && tap < taps;
            const auto outer = filters.outer(u32(filter));
            const auto inner = filters.inner(u32(k));
            ASSERT_EQ(filters.valid(outer, inner), exists ? std::clamp<Index>(conv.c - channel, 0, kChunkBytes) : 0);
            if (filters.valid(outer, inner) == 0) continue;
            ASSERT_EQ(filters.address(outer, inner) - kData, (filter * taps + tap) * conv.c + channel);
        }
    }
}

// Every pixel of dx, over all residue classes, meets every output that it was read for, with the right weight, once.
template <int ndim, bool wide>
void expect_backward(Random& random) {
    using Count = typename Counting<wide>::Count;
    const KernelConv conv = problem_args(conv_problem(random, Op::conv_bwd_data, ndim, wide)).conv;
    const Index pixels = product(conv.in), taps = product(conv.filter);
    std::map<std::pair<Index, Index>, Index> met;  // (pixel of dx, address of dy) -> tap
    Index rows = 0;
    for (Index residue = 0; residue < class_count(conv); ++residue) {
        const Walk walk = backward_walk(conv, residue);
        const Patches<Byte, ndim, false, 0, wide> patches(kData, conv.y, walk, conv.images, conv.k, conv.k, {});
        const Weights<Byte, ndim, wide> weights(kData, conv, walk, conv.k, {});
        const PositionWalk<ndim, wide> positions(walk);
        const Index count = conv.images * walk.positions();
        rows += count;
        for (Index row = 0; row < count; ++row) {
            Count at[kMaxKernelDims];
            const auto image = Index(positions.locate(Count(row), at));
            const Index pixel = image * pixels + walk.out_pixel(Index(at[0]), Index(at[1]), Index(at[2]));
            for (Index k = 0; k < walk.taps() * conv.k; k += conv.k) {
                const auto inner = patches.inner(Count(k));
                if (!patches.is_inside(patches.outer(Count(row)), inner)) continue;
                const Index address = patches.address(patches.outer(Count(row)), inner) - kData;
                const auto weight = weights.address(weights.outer(0), weights.inner(Count(k))) - kData;
                ASSERT_TRUE(met.emplace(std::pair{pixel, address}, weight / conv.c).second);
            }
        }
    }
    EXPECT_EQ(rows, conv.images * pixels);
    std::size_t expected = 0;
    for (Index row = 0; row < conv.images * product(conv.out); ++row) {
        const Index out = row / product(conv.out) * conv.y.image_stride + row % product(conv.out) * conv.y.pixel_stride;
        for (Index tap = 0; tap < taps; ++tap) {
            const Index in = input_at(conv, row, tap, 0);
            if (in < 0) continue;
            ++expected;
            const Index image = in / conv.x.image_stride;
            const Index pixel = image * pixels + in % conv.x.image_stride / conv.x.pixel_stride;
            const auto found = met.find({pixel, out});
            ASSERT_NE(found, met.end());
            ASSERT_EQ(found->second, tap);
        }
    }
    EXPECT_EQ(met.size(), expected);
}

TEST(CudaGatherSource, ResidueClassesMeetEveryOutputOnce) {
    Random random(6);
    for (int i = 0; i < 15; ++i) expect_backward<1, false>(random), expect_backward<2, false>(random);
    for (int i = 0; i < 15; ++i) expect_backward<1, true>(random), expect_backward<2, true>(random);
}

TEST(CudaDivisor, DividesLikeTheMachine) {
    Random random(7);
    constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - 1;
    for (int i = 0; i < 20000; ++i) {
        const auto number = [&] { return u32(random.between(1, kLimit >> random.between(0, 30))); };
        const u32 divisor = number(),
                  x = random.chance(30) ? divisor * u32(random.between(0, 3)) & u32(kLimit) : number();
        u32 rest = x;
        ASSERT_EQ(Divisor(divisor).divide(rest), x / divisor) << x << " / " << divisor;
        ASSERT_EQ(rest, x % divisor);
    }
}

TEST(CudaDivisor, WideOnesDivideLikeTheMachine) {
    Random random(8);
    for (int i = 0; i < 20000; ++i) {
        const auto number = [&] { return u64(random.between(1, INT64_MAX >> random.between(0, 62))); };
        const u64 divisor = number(), x = number();
        u64 rest = x;
        ASSERT_EQ(WideDivisor(divisor).divide(rest), x / divisor) << x << " / " << divisor;
        ASSERT_EQ(rest, x % divisor);
    }
}

}  // namespace
}  // namespace tilewise::gpu
