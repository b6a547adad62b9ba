// SPDX-License-Identifier: MIT
#include "select/needed_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "build/code_suffix.hpp"
#include "config/archs.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

const ArchSpec& hopper() { return **embedded_archs().find("sm_90a"); }

std::vector<Problem> problems(std::initializer_list<const char*> texts) {
    std::vector<Problem> list;
    for (const char* text : texts) list.push_back(*parse_problem(text));
    return list;
}

NeedOptions tiny(std::size_t top = 1) {
    NeedOptions options;
    options.rule_set = RuleSet::tiny;
    options.top = top;
    return options;
}

TEST(NeededCode, AKernelIsNeededOnceForEachChain) {
    const auto list = problems({"gemm:m=512,n=512,k=512,dtype=bf16", "gemm:m=512,n=512,k=512,dtype=bf16,epilogue=bias",
                                "gemm:m=512,n=512,k=512,dtype=bf16,epilogue=bias"});
    const auto needed = needed_kernels(list, hopper(), tiny());
    ASSERT_TRUE(needed.ok()) << needed.error().message;
    ASSERT_EQ(needed->size(), 2U);
    EXPECT_EQ((*needed)[0].uses, 2U) << "what most need comes first";
    const auto& config = (*needed)[0].kernel->config;
    const auto plain = launch_requests(list[0], config, hopper(), kCubin);
    const auto biased = launch_requests(list[1], config, hopper(), kCubin);
    ASSERT_TRUE(plain.ok() && biased.ok());
    ASSERT_EQ(plain->size(), 1U);
    EXPECT_NE(plain->front().source, biased->front().source);
}

TEST(NeededCode, TheBestFewAndWhatWasMeasured) {
    const auto list = problems({"gemm:m=512,n=512,k=512,dtype=bf16"});
    const auto three = needed_kernels(list, hopper(), tiny(3));
    ASSERT_TRUE(three.ok());
    ASSERT_EQ(three->size(), 3U);
    const std::vector<TuningRecord> tuned = {{"a gpu", print_problem(list[0]), (*three)[2].kernel->name, "digest", 1.0},
                                             {"a gpu", "another problem", (*three)[1].kernel->name, "digest", 1.0}};
    NeedOptions options = tiny();
    options.tuned = tuned;
    const auto with_tuned = needed_kernels(list, hopper(), options);
    ASSERT_TRUE(with_tuned.ok());
    ASSERT_EQ(with_tuned->size(), 2U);
    EXPECT_EQ((*with_tuned)[1].kernel->name, (*three)[2].kernel->name);
}

TEST(NeededCode, PaddingNeedsItsOwnKernel) {
    const auto list = problems({"conv_fwd:n=2,c=3,k=64,in=32x32,filter=3x3,dtype=bf16"});
    const auto needed = needed_kernels(list, hopper(), tiny(64));
    ASSERT_TRUE(needed.ok()) << needed.error().message;
    std::size_t padded = 0;
    for (const NeededKernel& one : *needed) {
        const auto requests = launch_requests(list[0], one.kernel->config, hopper(), kCubin);
        ASSERT_TRUE(requests.ok());
        if (requests->size() < 2) continue;
        ++padded;
        EXPECT_TRUE((*requests)[1].name.starts_with("pad_rows"));
    }
    EXPECT_GT(padded, 0U);
}

TEST(NeededCode, AProblemThatNoKernelMayRunIsAnError) {
    const auto list = problems({"gemm:m=64,n=64,k=64,dtype=fp8"});
    const auto needed = needed_kernels(list, **embedded_archs().find("sm_80"), tiny());
    ASSERT_FALSE(needed.ok());
    EXPECT_EQ(needed.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace tilewise
