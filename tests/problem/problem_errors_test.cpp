// SPDX-License-Identifier: MIT
// A problem that cannot be read is refused with the field, the place and what it takes.
#include <gtest/gtest.h>

#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

struct BadText {
    std::string_view text;
    std::vector<std::string_view> parts;  // of the message
};

std::string conv(std::string_view more) {
    return "conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,dtype=fp32," + std::string(more);
}

TEST(ProblemErrors, PointAtTheField) {
    const BadText cases[] = {
        {"", {"unknown operation ''", "gemm:m=64"}},
        {"gem:m=1,n=1,k=1,dtype=fp32", {"unknown operation 'gem'", "did you mean 'gemm'"}},
        {"gemm", {"'m' is missing"}},
        {"gemm:", {"'m' is missing"}},
        {"gemm:m=1,n=2,dtype=fp32", {"'k' is missing", "columns of A"}},
        {"gemm:m=1,n=2,k=3", {"'dtype' is missing"}},
        {"gemm:m=1,n=2,k=3,dtype=fp23", {"'dtype'", "column 18", "did you mean 'fp32'"}},
        {"gemm:m=1,n=2,k=abc,dtype=fp32", {"'k'", "column 14", "'abc' is not a whole number"}},
        {"gemm:m=99999999999999999999,n=2,k=3,dtype=fp32",
         {"'m'", "'99999999999999999999' is too large", "at most 281474976710656"}},
        {"conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x99999999999999999999,dtype=fp32", {"'filter'", "is too large"}},
        {"conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,pad=0:99999999999999999999,dtype=fp32", {"'pad'", "is too large"}},
        {"nope", {"'nope'", "conv_bwd_weight. A problem reads gemm:"}},
        {"gemm:m=1,n=2,k=,dtype=fp32", {"'k'", "column 14"}},
        {"gemm:m=1,n=2,k=1.5,dtype=fp32", {"'k'", "column 14"}},
        {"gemm:m=1,n=2,k=99999999999999999999,dtype=fp32", {"'k'", "column 14"}},
        {"  gemm:m=x,n=2,k=3,dtype=fp32", {"'m'", "column 8"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,", {"column 29", "is not key=value"}},
        {"gemm:m=1,,n=2,k=3,dtype=fp32", {"column 10", "is not key=value"}},
        {"gemm:m=1,n,k=3,dtype=fp32", {"column 10", "'n' is not key=value"}},
        {"gemm:m=1,n=2,k=3,m=4,dtype=fp32", {"'m'", "column 18", "given twice"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,layuot=rcr", {"unknown problem field 'layuot'", "'layout'", "column 29"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,filter=3x3", {"gemm", "unknown problem field 'filter'"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,layout=any", {"'layout'", "'any' is for kernels"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,layout=rcx", {"'layout'", "column 29", "unknown layout 'rcx'"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,lda=-1", {"'lda'", "0 or more"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,beta=2", {"'beta'", "'2' is not 0 or 1"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,beta=true", {"'beta'", "is not 0 or 1"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,epilogue=bias+", {"'epilogue'", "unknown epilogue operation ''"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,epilogue=bais", {"'epilogue'", "did you mean 'bias'"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,d=sub", {"'d'", "unknown D operation 'sub'"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,workspace=64MB", {"'workspace'", "'64MB' is not a byte count"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,scale=col", {"'scale'", "unknown scale 'col'"}},
        {"gemm:m=1,n=2,k=3,dtype=fp32,math=exact", {"'math'", "unknown math class 'exact'"}},
    };
    for (const BadText& bad : cases) {
        const auto result = parse_problem(bad.text);
        ASSERT_FALSE(result.ok()) << bad.text;
        EXPECT_EQ(result.error().code, ErrorCode::usage) << bad.text;
        for (const std::string_view part : bad.parts) {
            EXPECT_NE(result.error().message.find(part), std::string::npos) << bad.text << "\n"
                                                                            << result.error().message;
        }
    }
}

TEST(ProblemErrors, PointAtTheFieldOfAConvolution) {
    const BadText cases[] = {
        {"in=8", {"'in'", "given twice"}},
        {"stride=1x1x1", {"'stride'", "3 dimensions, in has 2"}},
        {"dilation=1x", {"'dilation'", "extents such as"}},
        {"pad=1:0:0", {"'pad'", "before:after"}},
        {"pad=1:0x", {"'pad'"}},
        {"pad=a", {"'pad'"}},
        {"stride=1x1x1x1", {"'stride'", "extents such as"}},
        {"m=4", {"unknown problem field 'm'"}},
        {"batch=4", {"unknown problem field 'batch'"}},
    };
    for (const BadText& bad : cases) {
        const auto result = parse_problem(conv(bad.text));
        ASSERT_FALSE(result.ok()) << bad.text;
        EXPECT_EQ(result.error().code, ErrorCode::usage) << bad.text;
        for (const std::string_view part : bad.parts) {
            EXPECT_NE(result.error().message.find(part), std::string::npos) << bad.text << "\n"
                                                                            << result.error().message;
        }
    }
}

// A pad with an empty part is a typing mistake, not a pad of one part less.
TEST(ProblemErrors, AnEmptyPartOfAPadIsRefused) {
    for (const char* pad :
         {"pad=x1", "pad=:1x1", "pad=:1", "pad=1:", "pad=1x", "pad=x", "pad=", "pad=1::0", "pad=1:x1"}) {
        const auto result = parse_problem(conv(pad));
        EXPECT_FALSE(result.ok()) << pad << " reads as " << (result ? print_problem(*result) : "");
    }
}

TEST(ProblemErrors, AnImpossibleProblemIsUnsupportedAndNamesTheRule) {
    const auto result = parse_problem("gemm:m=-1,n=2,k=3,dtype=fp32");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::unsupported);
    EXPECT_NE(result.error().message.find("size_positive"), std::string::npos);
    EXPECT_NE(result.error().message.find("m=-1"), std::string::npos);
    EXPECT_EQ(parse_problem(conv("layout=nwgc")).error().code, ErrorCode::unsupported);
}

TEST(ProblemErrors, JsonOfTheWrongShape) {
    const BadText cases[] = {
        {"[]", {"is an object, not array"}},
        {"{}", {"has a string \"op\""}},
        {R"({"op": 1})", {"has a string \"op\""}},
        {R"({"op": "gemmm"})", {"did you mean 'gemm'"}},
        {"{\"op\": \"gemm\", \"m\": 1,\n\"n\": 2.5, \"k\": 1, \"dtype\": \"fp32\"}", {"'n'", "line 2", "not number"}},
        {"{\"op\": \"gemm\", \"m\": [1]}", {"'m'", "line 1", "not array"}},
        {"{\"op\": \"gemm\", \"m\": null}", {"'m'", "line 1", "not null"}},
        {"{\"op\": \"gemm\",\n \"m\": \"x\", \"n\": 1, \"k\": 1, \"dtype\": \"fp32\"}", {"'m'", "line 2"}},
        {"{\"op\": \"gemm\",\n \"q\": 1}", {"unknown problem field 'q'", "line 2"}},
        {R"({"op": "gemm", "m": 1})", {"'n' is missing"}},
        {R"({"op": "gemm", "m": 1, "n": 1, "k": 1, "dtype": "fp32,lda=9"})", {"'dtype'", "'fp32,lda=9'"}},
    };
    for (const BadText& bad : cases) {
        const auto json = Json::parse(bad.text);
        ASSERT_TRUE(json.ok()) << bad.text;
        const auto result = problem_from_json(*json);
        ASSERT_FALSE(result.ok()) << bad.text;
        EXPECT_EQ(result.error().code, ErrorCode::usage) << bad.text;
        for (const std::string_view part : bad.parts) {
            EXPECT_NE(result.error().message.find(part), std::string::npos) << bad.text << "\n"
                                                                            << result.error().message;
        }
    }
}

// True is not a size, though it is a fine value of a flag.
TEST(ProblemErrors, JsonTruthValuesAreForFlagsOnly) {
    const auto read = [](std::string_view text) { return problem_from_json(*Json::parse(text)); };
    EXPECT_TRUE(read(R"({"op": "gemm", "m": 1, "n": 1, "k": 1, "dtype": "fp32", "beta": true})").ok());
    EXPECT_FALSE(read(R"({"op": "gemm", "m": true, "n": 1, "k": 1, "dtype": "fp32"})").ok());
}

}  // namespace
}  // namespace tilewise
