// SPDX-License-Identifier: MIT
// The report on a config that was checked, and on its correction.
#include "family/check_report.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/config_json.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kName =
    "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8_splitk4@gfx942";

// {valid, violations, corrected?, changes?} is what other programs read.
TEST(CheckReport, TheCheckReportHasItsShape) {
    const ArchSpec& arch = arch_named("gfx942");
    const auto good = parse_kernel_name(kName);
    const Json fine = check_to_json(report_check(*good, arch, false));
    EXPECT_EQ(*fine.find("valid")->boolean(), true);
    EXPECT_EQ(*fine.find("name")->string(), kName);
    EXPECT_TRUE(fine.find("violations")->array()->empty());
    EXPECT_EQ(fine.find("corrected"), nullptr);

    KernelConfig bad = *good;
    bad.scheduler = Scheduler::interwave;
    EXPECT_FALSE(report_check(bad, arch, false).ok());
    const CheckReport report = report_check(bad, arch, true);
    EXPECT_TRUE(report.ok()) << "corrected";
    const Json fixed = check_to_json(report);
    EXPECT_EQ(*fixed.find("valid")->boolean(), false) << "the config as given is not";
    ASSERT_EQ(fixed.find("violations")->array()->size(), 1u);
    const Json& violation = fixed.find("violations")->array()->front();
    EXPECT_EQ(*violation.find("rule")->string(), "scheduler");
    EXPECT_EQ(*violation.find("have")->string(), "interwave with compv3");
    EXPECT_EQ(*violation.find("need")->string(), "one of intrawave");
    EXPECT_EQ(*config_from_json(*fixed.find("corrected")), *good);
    EXPECT_EQ(*fixed.find("corrected_name")->string(), kName);
    ASSERT_EQ(fixed.find("changes")->array()->size(), 1u);
    EXPECT_EQ(fixed.find("changes")->array()->front().dump(),
              R"({"field":"scheduler","from":"interwave","to":"intrawave","rule":"scheduler"})");
    EXPECT_TRUE(fixed.find("remaining")->array()->empty());
}

TEST(CheckReport, SaysWhyThereIsNoCode) {
    const auto config =
        parse_kernel_name("gemm_bf16_rcr_compv3_cshuffle_intrawave_64x64x32_2x2x1_16x8x16_va8_vb8_vc8_swap@sm_90a");
    const CheckReport report = report_check(config.value(), arch_named("sm_90a"), true);
    EXPECT_TRUE(report.violations.empty());
    const Json json = check_to_json(report);
    EXPECT_TRUE(*json.find("valid")->boolean());
    EXPECT_FALSE(*json.find("available")->boolean());
    EXPECT_EQ(*json.find("family")->string(), "mma_gemm");
    EXPECT_EQ(json.find("without_code")->dump(),
              R"({"rule":"code_option","have":"swap_ab true","need":"false for mma_gemm"})");
    EXPECT_FALSE(report.correction->config.swap_ab);
    EXPECT_TRUE(report_check(report.correction->config, arch_named("sm_90a"), false).without_code == std::nullopt);
}

}  // namespace
}  // namespace tilewise
