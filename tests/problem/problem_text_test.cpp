// SPDX-License-Identifier: MIT
// The text and JSON forms of a problem mean the same and read back as written.
#include "problem/problem_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

Problem parsed(std::string_view text) {
    auto problem = parse_problem(text);
    EXPECT_TRUE(problem.ok()) << text << "\n" << (problem ? "" : problem.error().message);
    return problem ? *problem : Problem{};
}

TEST(ProblemText, PrintThenParseIsTheIdentity) {
    Random random(1);
    std::set<std::string> seen;
    for (int i = 0; i < 8000; ++i) {
        const Problem problem = random_problem(random);
        ASSERT_EQ(check_problem(problem), std::nullopt) << print_problem(problem);
        const std::string text = print_problem(problem);
        const auto again = parse_problem(text);
        ASSERT_TRUE(again.ok()) << text << "\n" << again.error().message;
        ASSERT_EQ(*again, problem) << text << "\n" << print_problem(*again);
        ASSERT_EQ(print_problem(*again), text);
        seen.insert(text);
    }
    EXPECT_GT(seen.size(), 7900u) << "different problems have different texts";
}

TEST(ProblemText, JsonRoundTrip) {
    Random random(2);
    for (int i = 0; i < 4000; ++i) {
        const Problem problem = random_problem(random);
        const Json json = problem_to_json(problem);
        const auto again = problem_from_json(json);
        ASSERT_TRUE(again.ok()) << json.dump() << "\n" << again.error().message;
        ASSERT_EQ(*again, problem) << json.dump();
        // Through text as well: what a file holds.
        const auto reread = problem_from_json(*Json::parse(json.dump(2)));
        ASSERT_TRUE(reread.ok());
        ASSERT_EQ(*reread, problem);
    }
}

TEST(ProblemText, JsonHasTheKeysAndValuesOfTheText) {
    Random random(3);
    for (int i = 0; i < 500; ++i) {
        const Problem problem = random_problem(random);
        const Json json = problem_to_json(problem);
        std::string text = *json.find("op")->string();
        for (const auto& [key, value] : *json.object()) {
            if (key == "op") continue;
            text += (text.find(':') == std::string::npos ? ":" : ",") + key + "=" +
                    (value.string() ? *value.string() : value.dump());
        }
        EXPECT_EQ(text, print_problem(problem));
    }
}

TEST(ProblemText, TheOrderOfFieldsDoesNotMatter) {
    Random random(4);
    for (int i = 0; i < 2000; ++i) {
        const Problem problem = random_problem(random);
        const std::string text = print_problem(problem);
        const auto colon = text.find(':');
        auto fields = split(std::string_view(text).substr(colon + 1), ',');
        for (std::size_t at = fields.size() - 1; at > 0; --at) {
            std::swap(fields[at], fields[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(at)))]);
        }
        const std::string shuffled = text.substr(0, colon + 1) + join(fields, " , ");
        ASSERT_EQ(parsed("  " + shuffled + " \n"), problem) << shuffled;
    }
}

TEST(ProblemText, ExamplesMeanWhatTheySay) {
    const Problem gemm = parsed(
        "gemm:m=1024,n=512,k=64,dtype=bf16,layout=crr,batch=8,epilogue=bias+gelu,d=add+mul,beta=1,"
        "scale=row,math=fast,align=32,deterministic=1,workspace=64M,lda=2048,batch_stride_b=0");
    EXPECT_EQ(gemm.op, Op::gemm);
    EXPECT_EQ(gemm.gemm.m, 1024);
    EXPECT_EQ(gemm.gemm.n, 512);
    EXPECT_EQ(gemm.gemm.k, 64);
    EXPECT_EQ(gemm.gemm.batch, 8);
    EXPECT_EQ(gemm.gemm.leading, (std::array<std::int64_t, 3>{2048, kPacked, kPacked}));
    EXPECT_EQ(gemm.gemm.batch_stride, (std::array<std::int64_t, 3>{kPacked, 0, kPacked}));
    EXPECT_EQ(gemm.layout, Layout::crr);
    EXPECT_EQ(gemm.epilogue, (std::vector{EpilogueOp::bias, EpilogueOp::gelu, EpilogueOp::add, EpilogueOp::mul}));
    EXPECT_TRUE(gemm.beta && gemm.deterministic);
    EXPECT_EQ(gemm.scale, Scale::row);
    EXPECT_EQ(gemm.math, Math::fast);
    EXPECT_EQ(gemm.align_bytes, 32);
    EXPECT_EQ(gemm.workspace_bytes, 64 << 20);

    const Problem conv = parsed(
        "conv_bwd_weight:n=64,g=2,c=96,k=32,in=56x28,filter=3x5,stride=1x2,pad=1:0x2:1,"
        "dilation=2x1,dtype=fp8,b=bf8,out=fp32,layout=ngchw");
    EXPECT_EQ(conv.op, Op::conv_bwd_weight);
    EXPECT_EQ(conv.conv.g, 2);
    EXPECT_EQ(conv.conv.in[1], 28);
    EXPECT_EQ(conv.conv.filter[1], 5);
    EXPECT_EQ(conv.conv.stride[1], 2);
    EXPECT_EQ(conv.conv.pad_before[0], 1);
    EXPECT_EQ(conv.conv.pad_after[0], 0);
    EXPECT_EQ(conv.conv.pad_before[1], 2);
    EXPECT_EQ(conv.conv.pad_after[1], 1);
    EXPECT_EQ(conv.conv.dilation[0], 2);
    EXPECT_EQ(conv.dtype_b, DType::bf8);
    EXPECT_EQ(conv.dtype_out, DType::fp32);
    EXPECT_EQ(conv.layout, Layout::ngchw);
}

TEST(ProblemText, DefaultsAreThoseOfTheManual) {
    EXPECT_EQ(print_problem(parsed("gemm:m=1,n=2,k=3,dtype=fp32")), "gemm:m=1,n=2,k=3,dtype=fp32,layout=rcr");
    EXPECT_EQ(print_problem(parsed("conv_fwd:n=1,c=4,k=4,in=8,filter=3,dtype=fp16")),
              "conv_fwd:n=1,g=1,c=4,k=4,in=8,filter=3,stride=1,pad=0,dilation=1,dtype=fp16,layout=nwgc");
    EXPECT_EQ(parsed("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,dtype=fp16").layout, Layout::nhwgc);
    EXPECT_EQ(parsed("conv_fwd:n=1,c=4,k=4,in=8x8x8,filter=3x3x3,dtype=fp16").layout, Layout::ndhwgc);
    for (const auto& [dtype, out] : {std::pair{"fp32", DType::fp32},
                                     {"fp16", DType::fp16},
                                     {"bf16", DType::bf16},
                                     {"fp8", DType::fp16},
                                     {"bf8", DType::fp16},
                                     {"int8", DType::int32}}) {
        EXPECT_EQ(parsed(std::string("gemm:m=1,n=2,k=3,dtype=") + dtype).dtype_out, out) << dtype;
    }
}

// Written out or left out, it is the same problem: records of both must meet under one key.
TEST(ProblemText, PackedStridesAreTheSameAsNone) {
    const std::string base = "gemm:m=8,n=16,k=32,dtype=fp32,batch=4";
    struct Packed {
        std::string_view layout, lda, ldb, ldc;
    };
    for (const Packed& p : {Packed{"rcr", "32", "32", "16"},
                            {"rrr", "32", "16", "16"},
                            {"crr", "8", "16", "16"},
                            {"ccr", "8", "32", "16"},
                            {"rcc", "32", "32", "8"},
                            {"ccc", "8", "32", "8"}}) {
        const std::string layout = ",layout=" + std::string(p.layout);
        const Problem plain = parsed(base + layout);
        EXPECT_EQ(parsed(base + layout + ",lda=" + std::string(p.lda) + ",ldb=" + std::string(p.ldb) +
                         ",ldc=" + std::string(p.ldc)),
                  plain)
            << p.layout;
        EXPECT_EQ(parsed(base + layout + ",batch_stride_a=256,batch_stride_b=512,batch_stride_c=128"), plain);
    }
    EXPECT_EQ(print_problem(parsed("gemm:m=8,n=16,k=32,dtype=fp32,lda=40,batch=2,batch_stride_a=320")),
              "gemm:m=8,n=16,k=32,dtype=fp32,layout=rcr,batch=2,lda=40")
        << "packed with the given rows";
    EXPECT_EQ(parsed("gemm:m=8,n=16,k=32,dtype=fp32,batch_stride_a=999"), parsed("gemm:m=8,n=16,k=32,dtype=fp32"))
        << "one matrix has no next one";
}

TEST(ProblemText, OneNumberServesAllDimensions) {
    EXPECT_EQ(parsed("conv_fwd:n=1,c=4,k=4,in=8x8x8,filter=3,stride=2,pad=1,dilation=1,dtype=fp32"),
              parsed("conv_fwd:n=1,c=4,k=4,in=8x8x8,filter=3x3x3,stride=2x2x2,pad=1x1x1,dilation=1x1x1,dtype=fp32"));
    EXPECT_EQ(parsed("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3,pad=1:0,dtype=fp32"),
              parsed("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,pad=1:0x1:0,dtype=fp32"));
}

TEST(ProblemText, AsymmetricPadsArePrintedAsSuch) {
    const auto pad_of = [](std::string_view pad) {
        const std::string text =
            print_problem(parsed("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3,dtype=fp32,pad=" + std::string(pad)));
        const auto at = text.find("pad=") + 4;
        return text.substr(at, text.find(',', at) - at);
    };
    EXPECT_EQ(pad_of("1:0x2:1"), "1:0x2:1");
    EXPECT_EQ(pad_of("1x2:1"), "1:1x2:1");
    EXPECT_EQ(pad_of("1:1x2:2"), "1x2");
    EXPECT_EQ(pad_of("0:3"), "0:3x0:3");
}

TEST(ProblemText, TheFieldTableIsSane) {
    for (const bool conv : {false, true}) {
        std::set<std::string_view> keys;
        for (const ProblemField& field : problem_fields()) {
            EXPECT_FALSE(field.help.empty()) << field.key;
            EXPECT_TRUE(field.in_gemm || field.in_conv) << field.key;
            if (conv ? field.in_conv : field.in_gemm) {
                EXPECT_TRUE(keys.insert(field.key).second) << field.key << " twice";
            }
        }
        EXPECT_GT(keys.size(), 15u);
    }
}

}  // namespace
}  // namespace tilewise
