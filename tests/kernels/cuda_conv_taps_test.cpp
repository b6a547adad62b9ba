// SPDX-License-Identifier: MIT
// The walks over pixels and taps of tensor convolutions against the definition of a convolution, and against the numbers that
// the host makes tensor maps from.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "base/random.hpp"
#include "config/im2col.hpp"
#include "kernels/cuda/im2col_conv/conv_taps.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

namespace im2col_conv = cuda::im2col_conv;
using im2col_conv::ConvLine;

// (pixel of x, tap, pixel of y) of every product along one dimension, with how often each was met.
using Products = std::map<std::tuple<int, int, int>, int>;

Problem random_line(Random& random, Op op) {
    Problem p;
    p.op = op;
    ConvShape& s = p.conv;
    s = {};
    s.n = 1, s.g = 1, s.c = 8, s.k = 8;
    const auto one = [](std::int64_t value) {
        Extents e;
        e.rank = 1, e.size[0] = value;
        return e;
    };
    do {
        s.in = one(random.between(1, 20)), s.filter = one(random.between(1, 6)), s.stride = one(random.between(1, 5));
        s.dilation = one(random.between(1, 4)), s.pad_before = one(random.between(0, 6));
        s.pad_after = one(random.between(0, 6));
    } while (s.in[0] + s.pad_before[0] + s.pad_after[0] < (s.filter[0] - 1) * s.dilation[0] + 1);
    return p;
}

KernelConv conv_of(const Problem& p) {
    KernelConv conv{};
    for (int i = 0; i < kMaxKernelDims; ++i) {
        conv.in[i] = conv.out[i] = conv.filter[i] = conv.stride[i] = conv.dilation[i] = 1;
    }
    const ConvShape& s = p.conv;
    constexpr int kW = kMaxKernelDims - 1;
    conv.in[kW] = s.in[0], conv.out[kW] = output_size(s)[0], conv.filter[kW] = s.filter[0];
    conv.stride[kW] = s.stride[0], conv.dilation[kW] = s.dilation[0], conv.pad[kW] = s.pad_before[0];
    return conv;
}

Products defined(const Problem& p) {
    const ConvShape& s = p.conv;
    Products products;
    for (std::int64_t o = 0; o < output_size(s)[0]; ++o) {
        for (std::int64_t t = 0; t < s.filter[0]; ++t) {
            const std::int64_t x = o * s.stride[0] + t * s.dilation[0] - s.pad_before[0];
            if (x >= 0 && x < s.in[0]) ++products[{static_cast<int>(x), static_cast<int>(t), static_cast<int>(o)}];
        }
    }
    return products;
}

// As the kernels walk: rows from `lower` in steps, taps by their offsets (those that are joined shifted by dilations), what lies
// outside being zeros.
template <Direction direction, int joined = 1>
Products walked(const Problem& p) {
    const KernelConv conv = conv_of(p);
    const ConvLine line = im2col_conv::line_of(conv, 0);
    const bool back = direction == Direction::backward_data;
    const int read = back ? line.out : line.in, classes = joined > 1 ? 1 : im2col_conv::class_count<1, direction>(conv);
    const im2col_conv::PixelWalk<1, direction, joined> pixels(conv);
    Products products;
    for (int q = 0; q < classes; ++q) {
        auto taps = im2col_conv::TapWalk<1, joined>::template of_class<direction>(conv, q);
        for (int i = 0; i < taps.count() * joined; ++i) {
            const int tap = taps.tap() + i % joined * (back ? -1 : 1);
            for (int row = 0; row < line.rows<direction>(); ++row) {
                const auto from = pixels.locate(static_cast<gpu::u32>(row));
                EXPECT_EQ(from.image, 0);
                const int at = from.at[0] + taps.offset(0) + i % joined * line.dilation;
                if (at < 0 || at >= read) continue;
                if (!back) {
                    ++products[{at, tap, row}];
                } else if (line.pixel(row, q) < line.in) {
                    ++products[{line.pixel(row, q), tap, at}];
                }
            }
            if (i % joined == joined - 1) taps.advance();
        }
    }
    return products;
}

template <Direction direction>
void expect_walks(Op op) {
    Random random(7);
    for (int i = 0; i < 500; ++i) {
        const Problem p = random_line(random, op);
        const ConvShape& s = p.conv;
        SCOPED_TRACE(testing::Message() << "in " << s.in[0] << " filter " << s.filter[0] << " stride " << s.stride[0]
                                        << " dilation " << s.dilation[0] << " pad " << s.pad_before[0] << ":"
                                        << s.pad_after[0]);
        ASSERT_EQ(walked<direction>(p), defined(p));
        const ConvLine line = im2col_conv::line_of(conv_of(p), 0);
        const Im2colLine host = im2col_line(p, KernelConfig{}, 0);
        ASSERT_EQ(host.lower, line.lower<direction>());
        ASSERT_EQ(host.rows, line.rows<direction>());
        ASSERT_EQ(host.step, line.row_step<direction>());
        ASSERT_EQ(host.classes, line.classes<direction>());
        // Every tap's offset is one that the copy engine can count to.
        for (int q = 0; q < host.classes; ++q) {
            const auto taps = line.taps<direction>(q);
            for (int t = 0; t < taps.count; ++t) {
                ASSERT_GE(taps.offset + t * taps.offset_step, 0);
                ASSERT_LE(taps.offset + t * taps.offset_step, host.farthest);
            }
        }
    }
}

template <Direction direction>
void expect_joined(Op op) {
    Random random(8);
    for (int i = 0; i < 300; ++i) {
        Problem p = random_line(random, op);
        p.conv.stride[0] = 1;
        if (p.conv.filter[0] % 3 != 0) continue;
        const auto products = walked<direction, 3>(p);
        ASSERT_EQ(products, defined(p)) << "in " << p.conv.in[0] << " filter " << p.conv.filter[0] << " dilation "
                                        << p.conv.dilation[0] << " pad " << p.conv.pad_before[0];
        KernelConfig config;
        config.op = op, config.gather = Gather::tensor, config.dtype = DType::bf16, config.tile.k = 192;
        const ConvLine line = im2col_conv::line_of(conv_of(p), 0);
        ASSERT_EQ(im2col_line(p, config, 0).rows, line.walked_rows<direction>(3));
        const Im2colLine host = im2col_line(p, config, 0);
        ASSERT_EQ(host.farthest, (p.conv.filter[0] - 3) * p.conv.dilation[0]);
        ASSERT_GE(host.rows, line.rows<direction>());
        // Where a tap reads what the next line begins with, both are outside the image.
        const std::int64_t reach = line.rows<direction>() + 2 * p.conv.dilation[0];
        for (std::int64_t at = host.rows; at < reach; ++at) {
            ASSERT_LT(host.lower + at - host.rows, 0);
            ASSERT_GE(host.lower + at, host.size);
        }
    }
}

TEST(CudaConvTaps, JoinedTapsMeetEveryProductOnce) {
    expect_joined<Direction::forward>(Op::conv_fwd);
    expect_joined<Direction::backward_data>(Op::conv_bwd_data);
}
TEST(CudaConvTaps, ForwardMeetsEveryProductOnce) { expect_walks<Direction::forward>(Op::conv_fwd); }
TEST(CudaConvTaps, BackwardDataMeetsEveryProductOnce) { expect_walks<Direction::backward_data>(Op::conv_bwd_data); }
TEST(CudaConvTaps, BackwardWeightMeetsEveryProductOnce) {
    expect_walks<Direction::backward_weight>(Op::conv_bwd_weight);
}

}  // namespace
}  // namespace tilewise
