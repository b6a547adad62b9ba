// SPDX-License-Identifier: MIT
#include "select/tuning_decision.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace tilewise {
namespace {

Measured measured(const char* kernel, double us, double spread = 0.01) {
    auto made = std::make_shared<Kernel>();
    made->name = kernel;
    return {std::move(made), "digest", us, spread, 11};
}

const TuningRecord kOld = {"device", "problem", "old", "digest", 10.0, 0.01};

TEST(TuningDecision, WithoutARecordWhateverWasMeasuredCounts) {
    EXPECT_TRUE(decide_tuning(std::nullopt, std::vector{measured("new", 9, 0.5)}).replaces);
}

TEST(TuningDecision, ANoisyMeasurementReplacesNothing) {
    const auto decision = decide_tuning(kOld, std::vector{measured("new", 5, 0.14), measured("old", 9)});
    EXPECT_FALSE(decision.replaces);
    EXPECT_NE(decision.why_not.find("spread 14 %"), std::string::npos) << decision.why_not;
}

TEST(TuningDecision, OnlyAKernelThatIsFasterBesideItReplacesTheOldOne) {
    EXPECT_TRUE(decide_tuning(kOld, std::vector{measured("new", 19), measured("old", 20)}).replaces)
        << "the machine is slower now, for both";
    EXPECT_FALSE(decide_tuning(kOld, std::vector{measured("new", 5)}).replaces) << "the old one was not there";
    EXPECT_FALSE(decide_tuning(kOld, std::vector{measured("old", 12), measured("new", 13)}).replaces)
        << "a worse time of the same kernel";
    EXPECT_TRUE(decide_tuning(kOld, std::vector{measured("old", 8), measured("new", 13)}).replaces);
}

TEST(TuningDecision, WhatWasNoisyIsReplacedByWhatIsNot) {
    TuningRecord noisy = kOld;
    noisy.spread = 0.4;
    EXPECT_TRUE(decide_tuning(noisy, std::vector{measured("old", 12)}).replaces);
}

}  // namespace
}  // namespace tilewise
