// SPDX-License-Identifier: MIT
// Every rule that makes a problem impossible, with the numbers it answers.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "problem/empty_problem.hpp"
#include "problem/operand_specs.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kGemm = "gemm:m=8,n=16,k=32,dtype=fp32,batch=4";
constexpr std::string_view kConv = "conv_fwd:n=2,g=2,c=8,k=4,in=9x7,filter=3x3,pad=1,dtype=fp32";
constexpr std::int64_t kLarge = std::int64_t{1} << 48;

struct Broken {
    std::string_view base;
    std::function<void(Problem&)> change;
    std::string rule, have, need;
};

const std::vector<Broken>& broken_problems() {
    static const std::vector<Broken> cases = {
        {kGemm, [](Problem& p) { p.dtype_a = DType::int32; }, "dtype_input", "int32 as an input",
         "fp32, fp16, bf16, fp8, bf8 or int8"},
        {kGemm, [](Problem& p) { p.dtype_b = DType::int32; }, "dtype_input", "int32 as an input",
         "fp32, fp16, bf16, fp8, bf8 or int8"},
        {kGemm, [](Problem& p) { p.dtype_b = DType::fp16; }, "dtype_pair", "dtype=fp32, b=fp16",
         "the same dtype for both inputs, or a mix of fp8 and bf8"},
        {kGemm, [](Problem& p) { p.dtype_out = DType::int32; }, "dtype_output", "out=int32 of fp32 inputs",
         "fp32, fp16, bf16, fp8 or bf8"},
        {kGemm,
         [](Problem& p) {
             p.dtype_a = p.dtype_b = DType::int8;
             p.dtype_out = DType::fp8;
         },
         "dtype_output", "out=fp8 of int8 inputs", "int32, int8, fp32, fp16 or bf16"},
        {kConv,
         [](Problem& p) {
             p.op = Op::conv_bwd_data;
             p.dtype_a = p.dtype_b = DType::int8;
         },
         "int8_forward_only", "conv_bwd_data in int8", "conv_fwd, or a float dtype"},
        {kGemm,
         [](Problem& p) {
             p.dtype_a = p.dtype_b = DType::bf16;
             p.math = Math::tf32;
         },
         "math_dtype", "math=tf32 with bf16", "dtype=fp32, or math=strict or fast"},
        {kConv, [](Problem& p) { p.scale = Scale::row; }, "scale_row", "scale=row in a convolution", "scale=tensor"},
        {kGemm, [](Problem& p) { p.epilogue.assign(9, EpilogueOp::relu); }, "epilogue_length", "9 operations",
         "at most 8"},
        {kGemm, [](Problem& p) { p.epilogue.assign(2, EpilogueOp::bias); }, "epilogue_bias", "2 times bias",
         "bias at most once"},
        {kConv,
         [](Problem& p) {
             p.op = Op::conv_bwd_weight;
             p.epilogue = {EpilogueOp::relu, EpilogueOp::bias};
         },
         "bias_output", "a bias in conv_bwd_weight, whose output are weights",
         "conv_fwd or conv_bwd_data, whose outputs have channels to add it to"},
        {kGemm, [](Problem& p) { p.epilogue.assign(5, EpilogueOp::add); }, "d_tensors", "5 D tensors", "at most 4"},
        {kGemm, [](Problem& p) { p.align_bytes = 24; }, "align", "align=24", "a power of two from 1 to 4096"},
        {kGemm, [](Problem& p) { p.align_bytes = 0; }, "align", "align=0", "a power of two from 1 to 4096"},
        {kGemm, [](Problem& p) { p.align_bytes = 8192; }, "align", "align=8192", "a power of two from 1 to 4096"},
        {kGemm, [](Problem& p) { p.layout = Layout::nhwgc; }, "layout_op", "layout=nhwgc in a gemm",
         "three letters of r and c"},
        {kConv, [](Problem& p) { p.layout = Layout::ndhwgc; }, "layout_op", "layout=ndhwgc with 2 spatial dimensions",
         "nwgc or ngcw in 1-D, nhwgc or ngchw in 2-D, ndhwgc or ngcdhw in 3-D"},
        {kGemm, [](Problem& p) { p.gemm.n = -1; }, "size_positive", "n=-1", "0 to 281474976710656"},
        {kGemm, [](Problem& p) { p.gemm.batch = -3; }, "size_positive", "batch=-3", "0 to 281474976710656"},
        {kGemm, [](Problem& p) { p.gemm.m = kLarge + 1; }, "size_positive", "m=281474976710657",
         "0 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.in[1] = 0; }, "size_positive", "in=0", "1 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.stride[0] = 0; }, "size_positive", "stride=0", "1 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.dilation[0] = -1; }, "size_positive", "dilation=-1", "1 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.filter[0] = 0; }, "size_positive", "filter=0", "1 to 281474976710656"},
        {kGemm, [](Problem& p) { p.gemm.m = p.gemm.k = std::int64_t{1} << 30; }, "size_overflow",
         "operand a of 4*1073741824*1073741824 elements", "at most 281474976710656 elements"},
        {kGemm, [](Problem& p) { p.gemm.m = p.gemm.k = kLarge; }, "size_overflow",
         "operand a of 4*281474976710656*281474976710656 elements", "at most 281474976710656 elements"},
        {kGemm, [](Problem& p) { p.gemm.leading[0] = kLarge; }, "size_overflow",
         "operand a of 32*281474976710656 elements", "at most 281474976710656 elements"},
        {kGemm, [](Problem& p) { p.gemm.batch_stride[0] = kLarge; }, "size_overflow",
         "operand a of 4*281474976710656 elements", "at most 281474976710656 elements"},
        {kConv, [](Problem& p) { p.conv.n = kLarge; }, "size_overflow", "x of 281474976710656*8*9*7*1 elements",
         "at most 281474976710656 elements"},
        {kConv, [](Problem& p) { p.conv.pad_before[0] = kLarge / 2; }, "size_overflow",
         "y of 2*4*140737488355336*7*1 elements", "at most 281474976710656 elements"},
        {kConv, [](Problem& p) { p.conv.n = 1, p.conv.c = 64, p.conv.k = std::int64_t{1} << 42; }, "size_overflow",
         "w of 4398046511104*32*3*3*1 elements", "at most 281474976710656 elements"},
        {kConv, [](Problem& p) { p.conv.filter[0] = p.conv.dilation[0] = std::int64_t{1} << 30; }, "size_overflow",
         "filter extent of 1073741824*1073741824 elements", "at most 281474976710656 elements"},
        {kConv, [](Problem& p) { p.conv.n = -1; }, "size_positive", "n=-1", "0 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.g = 0; }, "size_positive", "g=0", "1 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.c = 0; }, "size_positive", "c=0", "1 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.k = 0; }, "size_positive", "k=0", "1 to 281474976710656"},
        {kGemm, [](Problem& p) { p.gemm.leading[0] = 31; }, "leading_stride", "lda=31",
         "at least 32, the length of a stored row"},
        {kGemm, [](Problem& p) { p.gemm.leading[2] = 15; }, "leading_stride", "ldc=15",
         "at least 16, the length of a stored row"},
        {kGemm, [](Problem& p) { p.gemm.batch_stride[2] = 127; }, "batch_stride", "batch_stride_c=127",
         "at least 128, so that outputs do not overlap"},
        {kConv, [](Problem& p) { p.conv.g = 3; }, "groups_divide", "c=8, g=3", "c divisible by g"},
        {kConv, [](Problem& p) { p.conv.g = 8; }, "groups_divide", "k=4, g=8", "k divisible by g"},
        {kConv, [](Problem& p) { p.conv.pad_after[1] = -1; }, "pad_range", "pad=-1 in dimension 1",
         "0 to 281474976710656"},
        {kConv, [](Problem& p) { p.conv.dilation[1] = 5; }, "filter_fits",
         "filter reach 11 (filter 3, dilation 5) in dimension 1", "at most 9, the padded input"},
    };
    return cases;
}

TEST(CheckProblem, EachRuleAnswersWithItsNumbers) {
    for (const Broken& broken : broken_problems()) {
        auto problem = parse_problem(broken.base);
        ASSERT_TRUE(problem.ok());
        broken.change(*problem);
        const auto rejected = check_problem(*problem);
        ASSERT_TRUE(rejected.has_value()) << broken.rule << ": " << broken.have;
        EXPECT_EQ(rejected->rule, broken.rule);
        EXPECT_EQ(rejected->have, broken.have);
        EXPECT_EQ(rejected->need, broken.need);
    }
}

// One matrix for every product of the batch would be written by all of them; the need is that of one matrix.
TEST(CheckProblem, AnOutputIsNeverShared) {
    auto problem = parse_problem(kGemm);
    problem->gemm.batch_stride[2] = 0;
    const auto rejected = check_problem(*problem);
    ASSERT_TRUE(rejected.has_value());
    EXPECT_EQ(rejected->rule, "batch_stride");
    EXPECT_EQ(rejected->have, "batch_stride_c=0");
    EXPECT_EQ(rejected->need, "at least 128, so that outputs do not overlap");
}

TEST(CheckProblem, BoundariesAreAllowed) {
    const std::pair<std::string_view, std::function<void(Problem&)>> cases[] = {
        {kGemm,
         [](Problem& p) {
             p.gemm.leading = {32, 32, 16};
         }},
        {kGemm,
         [](Problem& p) {
             p.gemm.batch_stride = {0, 0, 128};
         }},
        {kGemm,
         [](Problem& p) {
             p.gemm.batch_stride = {1, 1, 128};
         }},  // inputs may overlap
        {kGemm,
         [](Problem& p) {
             p.gemm = {1, 1, kLarge, 1};
         }},
        {kGemm, [](Problem& p) { p.epilogue.assign(8, EpilogueOp::relu); }},
        {kGemm, [](Problem& p) { p.epilogue.assign(4, EpilogueOp::mul); }},
        {kGemm, [](Problem& p) { p.align_bytes = 4096; }},
        {kConv, [](Problem& p) { p.conv.dilation[1] = 4; }},  // reaches exactly over the padded input
        {kConv, [](Problem& p) { p.conv.stride[0] = 1000; }},
    };
    for (const auto& [base, change] : cases) {
        auto problem = parse_problem(base);
        change(*problem);
        const auto rejected = check_problem(*problem);
        EXPECT_EQ(rejected, std::nullopt) << rejected->rule << ": " << rejected->have << "; " << rejected->need;
    }
}

// With wild sizes the check must answer without overflow, and what passes must have sane facts.
TEST(CheckProblem, HugeSizesNeverOverflow) {
    Random random(5);
    int accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        Problem p = random_problem(random, 50);
        const auto wild = [&](std::int64_t& value) {
            if (random.chance(30)) value = static_cast<std::int64_t>(random.bits() >> random.between(0, 63));
        };
        for (auto* value : {&p.gemm.m, &p.gemm.n, &p.gemm.k, &p.gemm.batch, &p.conv.n, &p.conv.c, &p.conv.k})
            wild(*value);
        for (auto& value : p.gemm.leading) wild(value);
        for (auto& value : p.gemm.batch_stride) wild(value);
        for (auto* extents : {&p.conv.in, &p.conv.filter, &p.conv.stride, &p.conv.dilation, &p.conv.pad_before}) {
            for (int d = 0; d < extents->rank; ++d) wild((*extents)[d]);
        }
        if (check_problem(p)) continue;
        ++accepted;
        EXPECT_EQ(flops(p) > 0, !is_empty(p)) << print_problem(p);
        EXPECT_TRUE(bytes_moved(p) > 0 || is_empty(p)) << print_problem(p);
        EXPECT_GE(operand_specs(p).size(), 3U) << print_problem(p);
        for (const std::int64_t elements : operand_elements(p)) {
            EXPECT_GE(elements, is_empty(p) ? 0 : 1) << print_problem(p);
            EXPECT_LE(elements, kLarge) << print_problem(p);
        }
    }
    EXPECT_GT(accepted, 300);
}

}  // namespace
}  // namespace tilewise
