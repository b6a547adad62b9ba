// SPDX-License-Identifier: MIT
// Compiling ahead what problems need, through the C interface; the tests in Python see compilers at work and stopped.
#include <gtest/gtest.h>

#include <string>

#include "capi/last_error.hpp"
#include "tilewise/tilewise.h"

namespace {

class CapiBuildProblems : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(tilewise_context_create("cpu", nullptr, &context_), TILEWISE_OK) << last_error();
        options_.size = sizeof(options_);
        options_.rule_set = "builtin";
    }
    void TearDown() override {
        tilewise_free(json_);
        tilewise_context_destroy(context_);
    }
    tilewise_status build(const char* problems, int jobs = 1) {
        return tilewise_build_problems(context_, problems, &options_, jobs, nullptr, nullptr, &json_);
    }

    tilewise_context* context_ = nullptr;
    tilewise_select_options options_{};
    char* json_ = nullptr;
};

TEST_F(CapiBuildProblems, EachProblemGetsItsKernel) {
    ASSERT_EQ(build("# a model\ngemm:m=5,n=7,k=9,dtype=fp32\n\ngemm:m=6,n=7,k=9,dtype=fp32,epilogue=bias"), TILEWISE_OK)
        << last_error();
    const std::string json = json_;
    EXPECT_NE(json.find("gemm:m=6,n=7,k=9,dtype=fp32,layout=rcr,epilogue=bias"), std::string::npos) << json;
    EXPECT_NE(json.find("\"kernel\":\"gemm_fp32_"), std::string::npos) << json;
    EXPECT_NE(json.find("\"failures\":[]"), std::string::npos) << json;
}

TEST_F(CapiBuildProblems, AnEmptyListNeedsNothing) {
    ASSERT_EQ(build(""), TILEWISE_OK) << last_error();
    EXPECT_EQ(std::string(json_), R"({"problems":[],"compiled":0,"failures":[]})");
}

TEST_F(CapiBuildProblems, BadInputIsRefusedWithItsLine) {
    EXPECT_EQ(build(nullptr), TILEWISE_USAGE);
    EXPECT_EQ(build("gemm:m=5,n=7,k=9,dtype=fp32", -1), TILEWISE_USAGE);
    EXPECT_EQ(build("gemm:m=5,n=7,k=9,dtype=fp32\nnonsense"), TILEWISE_USAGE);
    EXPECT_NE(std::string(last_error()).find("the list of problems:2: "), std::string::npos) << last_error();
    options_.kernel = "gemm_fp32_any_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1@cpu-generic";
    EXPECT_EQ(build("gemm:m=5,n=7,k=9,dtype=fp32"), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_build_problems(nullptr, "", nullptr, 0, nullptr, nullptr, &json_), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_build_problems(context_, "", nullptr, 0, nullptr, nullptr, nullptr), TILEWISE_USAGE);
}

}  // namespace
