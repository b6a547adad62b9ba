// SPDX-License-Identifier: MIT
// The walk over the sums of a pixel of dx against the definition of a convolution.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "kernels/common/col2im_conv_args.hpp"

namespace tilewise {
namespace {

// Places of sums for every pixel of dx, sorted.
using Sums = std::vector<std::vector<int>>;

KernelConv random_conv(Random& random, int ndim) {
    KernelConv conv{};
    conv.images = random.between(1, 3), conv.c = random.between(1, 9);
    for (int d = 0; d < kMaxKernelDims; ++d) {
        conv.in[d] = conv.out[d] = conv.filter[d] = conv.stride[d] = conv.dilation[d] = 1;
        if (d < kMaxKernelDims - ndim) continue;
        Index padded = 0;
        do {
            conv.in[d] = random.between(1, 9), conv.filter[d] = random.between(1, 5),
            conv.pad[d] = random.between(0, 6);
            conv.stride[d] = random.chance(5) ? 1 << 29 : random.between(1, 5);
            conv.dilation[d] = random.between(1, 5);
            padded = conv.in[d] + conv.pad[d] + random.between(0, 6);
        } while (padded < (conv.filter[d] - 1) * conv.dilation[d] + 1);
        conv.out[d] = (padded - (conv.filter[d] - 1) * conv.dilation[d] - 1) / conv.stride[d] + 1;
    }
    return conv;
}

struct Place {
    Index at[kMaxKernelDims];
    bool has_next(const Index (&extent)[kMaxKernelDims]) {
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            if (++at[d] < extent[d]) return true;
            at[d] = 0;
        }
        return false;
    }
    Index index(const Index (&extent)[kMaxKernelDims]) const { return (at[0] * extent[1] + at[1]) * extent[2] + at[2]; }
};

Sums defined(const KernelConv& conv) {
    const Index in_pixels = conv.in[0] * conv.in[1] * conv.in[2], out_pixels = conv.out[0] * conv.out[1] * conv.out[2];
    const Index taps = conv.filter[0] * conv.filter[1] * conv.filter[2];
    Sums sums(static_cast<std::size_t>(conv.images * in_pixels));
    Place out{}, tap{};
    do {
        do {
            Place in{};
            bool inside = true;
            for (int d = 0; d < kMaxKernelDims; ++d) {
                in.at[d] = out.at[d] * conv.stride[d] + tap.at[d] * conv.dilation[d] - conv.pad[d];
                inside = inside && in.at[d] >= 0 && in.at[d] < conv.in[d];
            }
            for (Index image = 0; inside && image < conv.images; ++image) {
                const Index row = image * out_pixels + out.index(conv.out);
                sums[static_cast<std::size_t>(image * in_pixels + in.index(conv.in))].push_back(
                    to_int((row * taps + tap.index(conv.filter)) * conv.c));
            }
        } while (tap.has_next(conv.filter));
    } while (out.has_next(conv.out));
    for (auto& places : sums) std::sort(places.begin(), places.end());
    return sums;
}

template <int ndim>
Sums walked(const KernelConv& conv) {
    const Col2imConvArgs args = col2im_conv_args(conv);
    Sums sums(static_cast<std::size_t>(conv.images * conv.in[0] * conv.in[1] * conv.in[2]));
    for (std::size_t pixel = 0; pixel < sums.size(); ++pixel) {
        ColumnWalk<ndim> walk(args, static_cast<int>(pixel));
        const int first = walk.at;
        for (int i = 0; i < walk.count; ++i, walk.next()) sums[pixel].push_back(walk.at);
        EXPECT_EQ(walk.at, first) << "it begins again";
        std::sort(sums[pixel].begin(), sums[pixel].end());
    }
    return sums;
}

template <int ndim>
void expect_walks(int tries) {
    Random random(5);
    for (int i = 0; i < tries; ++i) {
        const KernelConv conv = random_conv(random, ndim);
        ASSERT_EQ(walked<ndim>(conv), defined(conv)) << "case " << i;
    }
}

TEST(ColumnWalk, MeetsTheTapsOfALine) { expect_walks<1>(2000); }
TEST(ColumnWalk, MeetsTheTapsOfAnImage) { expect_walks<2>(500); }
TEST(ColumnWalk, MeetsTheTapsOfAVolume) { expect_walks<3>(100); }

}  // namespace
}  // namespace tilewise
