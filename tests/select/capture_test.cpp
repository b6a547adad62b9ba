// SPDX-License-Identifier: MIT
// While the program captures a stream nothing is measured: the ranked choice is taken, the plan says so, and it is not kept.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "build/nvrtc.hpp"
#include "config/archs.hpp"
#include "device/null/null_device.hpp"
#include "problem/problem_text.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {
namespace {

struct CaptureTest : testing::Test {
    CaptureTest() {
        settings.cache_dir = std::filesystem::temp_directory_path() / ("tilewise-capture-" + std::to_string(getpid()));
        options.strategy = Strategy::measure;
        options.measure_top = 1;
        options.stream = &stream;
    }
    ~CaptureTest() override { std::filesystem::remove_all(settings.cache_dir); }

    int stream = 0;  // its address is a stream
    NullDevice device{**embedded_archs().find("sm_90a")};
    BuildSettings settings = build_settings().value();
    Builder builder{settings};
    Dispatcher dispatcher{device, builder, nullptr};
    SelectOptions options;
    const Problem problem = parse_problem("gemm:m=512,n=512,k=512,dtype=bf16,layout=rcr").value();
};

TEST_F(CaptureTest, NothingIsMeasured) {
    device.capturing = &stream;
    const auto plan = dispatcher.plan(problem, options);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ((*plan)->source, PlanSource::rules);
    ASSERT_EQ((*plan)->notes.size(), 1u);
    EXPECT_EQ((*plan)->notes[0].kind, "capture");
    EXPECT_TRUE(device.launches.empty());
}

TEST_F(CaptureTest, TheNextTimeMayMeasure) {
    if (const auto nvrtc = find_nvrtc(settings.nvrtc, std::nullopt); !nvrtc) GTEST_SKIP() << nvrtc.error().message;
    device.capturing = &stream;
    ASSERT_TRUE(dispatcher.plan(problem, options).ok());
    device.capturing = nullptr;
    const auto plan = dispatcher.plan(problem, options);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ((*plan)->source, PlanSource::measured);
    EXPECT_GT(device.launches.size(), 0u);
    EXPECT_EQ(dispatcher.plan(problem, options)->get(), plan->get()) << "and that is kept";
}

}  // namespace
}  // namespace tilewise
