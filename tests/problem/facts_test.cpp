// SPDX-License-Identifier: MIT
// Derived facts against counting one by one on small shapes.
#include "problem/facts.hpp"

#include <gtest/gtest.h>

#include <set>

#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

constexpr int kSmall = 4;

// How often a filter of one dimension can be laid on the padded input.
std::int64_t count_positions(const ConvShape& s, int i) {
    std::int64_t count = 0;
    const std::int64_t padded = s.in[i] + s.pad_before[i] + s.pad_after[i];
    for (std::int64_t start = 0; start + (s.filter[i] - 1) * s.dilation[i] < padded; start += s.stride[i]) ++count;
    return count;
}

// Pairs of a position of the padded input and a tap that meet at an output, counted from the input's side as
// backward data does it: most positions meet no output with most taps when the stride is above 1.
std::int64_t count_meetings(const ConvShape& s, int i) {
    std::int64_t count = 0;
    const std::int64_t outputs = count_positions(s, i);
    const std::int64_t padded = s.in[i] + s.pad_before[i] + s.pad_after[i];
    for (std::int64_t at = 0; at < padded; ++at) {
        for (std::int64_t tap = 0; tap < s.filter[i]; ++tap) {
            const std::int64_t start = at - tap * s.dilation[i];
            if (start >= 0 && start % s.stride[i] == 0 && start / s.stride[i] < outputs) ++count;
        }
    }
    return count;
}

TEST(Facts, OutputSizeIsTheNumberOfFilterPositions) {
    Random random(1);
    for (int i = 0; i < 3000; ++i) {
        const Problem p = random_problem(random, 20);
        if (!is_conv(p.op)) continue;
        const Extents out = output_size(p.conv);
        ASSERT_EQ(out.rank, p.conv.in.rank);
        for (int d = 0; d < out.rank; ++d) ASSERT_EQ(out[d], count_positions(p.conv, d)) << print_problem(p);
    }
}

TEST(Facts, FlopsAreTwoPerMultiplyAdd) {
    Random random(2);
    for (int i = 0; i < 3000; ++i) {
        const Problem p = random_problem(random, kSmall);
        double count = 0;
        if (p.op == Op::gemm) {
            for (std::int64_t b = 0; b < p.gemm.batch; ++b) {
                for (std::int64_t m = 0; m < p.gemm.m; ++m) count += static_cast<double>(p.gemm.n * p.gemm.k);
            }
        } else {
            const ConvShape& s = p.conv;
            count = static_cast<double>(s.n * s.g * (s.c / s.g) * (s.k / s.g));
            for (int d = 0; d < s.in.rank; ++d) count *= static_cast<double>(count_meetings(s, d));
        }
        ASSERT_NEAR(flops(p), 2 * count, 1e-9 * count) << print_problem(p);
    }
}

TEST(Facts, TheThreeDirectionsDoTheSameWork) {
    Random random(3);
    for (int i = 0; i < 1000; ++i) {
        Problem p = random_problem(random, 10);
        if (!is_conv(p.op)) continue;
        p.op = Op::conv_fwd;
        const double forward = flops(p);
        p.op = Op::conv_bwd_data;
        EXPECT_NEAR(flops(p), forward, 1e-9 * forward) << print_problem(p);
        p.op = Op::conv_bwd_weight;
        EXPECT_NEAR(flops(p), forward, 1e-9 * forward) << print_problem(p);
    }
}

TEST(Facts, GemmViewIsTheTableOfTheManual) {
    const auto view = [](std::string_view text) { return gemm_view(*parse_problem(text)); };
    EXPECT_EQ(view("gemm:m=2,n=3,k=5,batch=7,dtype=fp32"), (GemmView{2, 3, 5, 7}));
    // 2 images, 3 groups of 4 and 5 channels, 6x8 -> 3x4 by a 2x3 filter (stride 2, pad 1 on one side of columns).
    const std::string shape = ":n=2,g=3,c=12,k=15,in=6x8,filter=2x3,stride=2,pad=0x1:0,dtype=fp32";
    EXPECT_EQ(view("conv_fwd" + shape), (GemmView{2 * 3 * 4, 5, 4 * 6, 3}));
    EXPECT_EQ(view("conv_bwd_data" + shape), (GemmView{2 * 6 * 8, 4, 5 * 6, 3}));
    EXPECT_EQ(view("conv_bwd_weight" + shape), (GemmView{5, 4 * 6, 2 * 3 * 4, 3}));
}

// Counts the different elements of a GEMM operand by their addresses.
std::int64_t count_addresses(const Problem& p, int operand) {
    const GemmShape& s = p.gemm;
    const bool row = is_row(p.layout, operand);
    const std::int64_t rows = operand == 1 ? s.k : s.m, columns = operand == 0 ? s.k : s.n;
    std::set<std::int64_t> addresses;
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < columns; ++c) {
                addresses.insert(b * batch_stride(p, operand) +
                                 (row ? r * leading_stride(p, operand) + c : c * leading_stride(p, operand) + r));
            }
        }
    }
    return static_cast<std::int64_t>(addresses.size());
}

TEST(Facts, ElementsAndBytesCountEveryOperandOnce) {
    Random random(4);
    for (int i = 0; i < 1500; ++i) {
        const Problem p = random_problem(random, kSmall);
        const auto elements = operand_elements(p);
        if (p.op == Op::gemm) {
            for (int operand = 0; operand < 3; ++operand) {
                ASSERT_EQ(elements[static_cast<std::size_t>(operand)], count_addresses(p, operand)) << print_problem(p);
            }
        } else {
            const ConvShape& s = p.conv;
            std::int64_t x = s.n * s.c, y = s.n * s.k, w = s.k * s.c / s.g;
            for (int d = 0; d < s.in.rank; ++d) x *= s.in[d], y *= count_positions(s, d), w *= s.filter[d];
            const std::array<std::int64_t, 3> forward = {x, w, y}, data = {y, w, x}, weight = {y, x, w};
            ASSERT_EQ(elements, p.op == Op::conv_fwd ? forward : p.op == Op::conv_bwd_data ? data : weight);
        }
        const std::int64_t outputs = 1 + (p.beta ? 1 : 0) + static_cast<std::int64_t>(d_count(p));
        const auto bytes = static_cast<double>(elements[0] * bytes_of(p.dtype_a) + elements[1] * bytes_of(p.dtype_b) +
                                               outputs * elements[2] * bytes_of(p.dtype_out));
        ASSERT_EQ(bytes_moved(p), bytes) << print_problem(p);
        ASSERT_DOUBLE_EQ(arithmetic_intensity(p), flops(p) / bytes);
    }
}

// The layout's own letters say what lies side by side: the last one is the fastest.
TEST(Facts, ContiguousLengthFollowsTheLettersOfTheLayout) {
    Random random(5);
    for (int i = 0; i < 3000; ++i) {
        const Problem p = random_problem(random, 20);
        const std::string_view letters = name_of(p.layout);
        for (int operand = 0; operand < 3; ++operand) {
            std::int64_t expected = 0;
            if (p.op == Op::gemm) {
                const std::int64_t rows[] = {p.gemm.m, p.gemm.k, p.gemm.m}, columns[] = {p.gemm.k, p.gemm.n, p.gemm.n};
                expected = letters[static_cast<std::size_t>(operand)] == 'r' ? columns[operand] : rows[operand];
            } else {
                const std::string_view roles = p.op == Op::conv_fwd ? "xwy" : p.op == Op::conv_bwd_data ? "ywx" : "yxw";
                const char role = roles[static_cast<std::size_t>(operand)];
                const int last = p.conv.in.rank - 1;
                if (role == 'w' || (role == 'x' && letters.back() == 'c'))
                    expected = p.conv.c / p.conv.g;
                else if (role == 'y' && letters.back() == 'c')
                    expected = p.conv.k / p.conv.g;
                else
                    expected = role == 'x' ? p.conv.in[last] : count_positions(p.conv, last);
            }
            ASSERT_EQ(contiguous_length(p, operand), expected) << print_problem(p) << " operand " << operand;
        }
    }
}

TEST(Facts, DepthwiseAndPointwise) {
    const auto conv = [](std::string_view shape) {
        return *parse_problem("conv_fwd:n=1,in=8x8,dtype=fp32," + std::string(shape));
    };
    EXPECT_TRUE(is_depthwise(conv("g=8,c=8,k=8,filter=3")));
    EXPECT_TRUE(is_depthwise(conv("g=8,c=8,k=16,filter=3"))) << "a channel multiplier is depthwise too";
    EXPECT_FALSE(is_depthwise(conv("g=4,c=8,k=8,filter=3")));
    EXPECT_FALSE(is_depthwise(conv("g=1,c=1,k=8,filter=3"))) << "one group of one channel is a plain convolution";
    EXPECT_FALSE(is_depthwise(*parse_problem("gemm:m=1,n=1,k=1,dtype=fp32")));
    EXPECT_TRUE(is_pointwise(conv("g=1,c=8,k=8,filter=1")));
    EXPECT_TRUE(is_pointwise(conv("g=2,c=8,k=8,filter=1,stride=2,pad=1")));
    EXPECT_FALSE(is_pointwise(conv("g=1,c=8,k=8,filter=1x2")));
    EXPECT_FALSE(is_pointwise(*parse_problem("gemm:m=1,n=1,k=1,dtype=fp32")));
}

}  // namespace
}  // namespace tilewise
