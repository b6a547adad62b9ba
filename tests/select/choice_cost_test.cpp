// SPDX-License-Identifier: MIT
// A choice that was not made before costs little: a program pays it for every new shape. Each problem's CPU time is the least of 20
// rounds, so that a busy machine does not matter; the limits are three times what is aimed at (20 us in the middle, 60 us for 99 of 100).
// A choice by a learned model has the same. For builds with sanitizers there are none.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "base/sanitized.hpp"
#include "build/build_testing.hpp"
#include "config/archs.hpp"
#include "device/null/null_device.hpp"
#include "learn/test_model.hpp"
#include "select/dispatcher.hpp"
#include "select/test_problems.hpp"

namespace tilewise {
namespace {

double cpu_us() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

class ChoiceCostTest : public build_testing::BuildTest {
protected:
    static void expect_cheap(Dispatcher& dispatcher, const std::string& set) {
        constexpr int kRounds = 20;
        constexpr std::size_t kEvery = 3;
        const std::vector<Problem> problems = problems_of_set(set, kEvery);
        std::vector<double> least(problems.size(), 1e9);
        for (int round = 0; round < (is_sanitized() ? 1 : kRounds); ++round) {
            dispatcher.forget_plans();
            for (std::size_t i = 0; i < problems.size(); ++i) {
                const double begin = cpu_us();
                ASSERT_TRUE(dispatcher.plan(problems[i]).ok()) << print_problem(problems[i]);
                least[i] = std::min(least[i], cpu_us() - begin);
            }
        }
        std::sort(least.begin(), least.end());
        const ArchSpec& arch = dispatcher.device().arch();
        const double median = least[least.size() / 2], most = least[least.size() * 99 / 100];
        std::printf("%s, %s: median %.1f us, 99 of 100 within %.1f us\n", arch.name.c_str(), set.c_str(), median, most);
        if (is_sanitized()) return;
        EXPECT_LT(median, 3 * 20.0) << set;
        EXPECT_LT(most, 3 * 60.0) << set;
    }
};

TEST_F(ChoiceCostTest, StaysWithinThreeTimesTheAim) {
    for (const char* arch : {"cpu-avx2", "cpu-avx512", "sm_80", "sm_90a", "gfx942"}) {
        NullDevice device(arch_named(arch));
        Builder builder(settings_);
        Dispatcher dispatcher(device, builder, nullptr);
        for (const char* set : {"gemm_test", "forward_test", "bwd_data_test", "bwd_weight_test"}) {
            expect_cheap(dispatcher, set);
        }
    }
}

// 128 trees of 31 leaves.
TEST_F(ChoiceCostTest, StaysWithinThreeTimesTheAimWithALearnedModel) {
    NullDevice device(arch_named("sm_90a"));
    const std::string dtypes = R"(["bf16","fp16","fp32","fp8","bf8","int8"])";
    write_model(at("models/gemm"), card_text(Op::gemm, "sm_90a", {"wgmma_gemm m64", "wgmma_gemm m64 swap"}, 0, dtypes),
                many_tests(Op::gemm, 128, 7));
    ModelStore models({at("models")});
    Builder builder(settings_);
    Dispatcher dispatcher(device, builder, nullptr);
    dispatcher.use_models(models);
    const auto plan = dispatcher.plan(problems_of_set("gemm_test").front());
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ((*plan)->source, PlanSource::model) << (*plan)->why;
    expect_cheap(dispatcher, "gemm_test");
}

}  // namespace
}  // namespace tilewise
