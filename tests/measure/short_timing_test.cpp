// SPDX-License-Identifier: MIT
#include "measure/short_timing.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tilewise {
namespace {

// Kernels that take a known time, by a clock that a test may make jump.
struct ShortTimingTest : testing::Test {
    TimedCalls taking(std::string name, double seconds) {
        return [this, name, seconds](std::int64_t calls) -> Result<double> {
            log.push_back(name);
            blocks[name].push_back(calls);
            return static_cast<double>(calls) * seconds;
        };
    }

    std::vector<std::string> log;
    std::map<std::string, std::vector<std::int64_t>> blocks;
    ShortTimingOptions options;
};

TEST_F(ShortTimingTest, NearKernelsAreTimedAgainAndFarOnesOnce) {
    const TimedCalls kernels[] = {taking("best", 10e-6), taking("near", 12e-6), taking("middle", 20e-6),
                                  taking("far", 40e-6)};
    const auto times = time_shortly(kernels, options);
    ASSERT_EQ(times.size(), 4u);
    EXPECT_DOUBLE_EQ(times[0].seconds, 10e-6);
    EXPECT_EQ(times[0].samples, 3);
    EXPECT_DOUBLE_EQ(times[0].seconds_again.value(), 10e-6);
    EXPECT_TRUE(times[1].seconds_again);
    EXPECT_EQ(times[2].samples, 3);
    EXPECT_FALSE(times[2].seconds_again);
    EXPECT_EQ(times[3].samples, 1);
    // One call, then blocks of about 0.4 ms.
    EXPECT_EQ(blocks["best"], (std::vector<std::int64_t>{1, 40, 40, 40, 40, 40, 40, 40, 40}));
    EXPECT_EQ(blocks["far"], (std::vector<std::int64_t>{1, 10}));
}

TEST_F(ShortTimingTest, KernelsTakeTurns) {
    const TimedCalls kernels[] = {taking("a", 1e-3), taking("b", 1e-3)};
    (void)time_shortly(kernels, options);
    const std::vector<std::string> begin(log.begin(), log.begin() + 8);
    EXPECT_EQ(begin, (std::vector<std::string>{"a", "b", "a", "b", "a", "b", "b", "a"}));
}

TEST_F(ShortTimingTest, LongCallsAreTimedOnce) {
    const TimedCalls kernels[] = {taking("long", 2)};
    const auto times = time_shortly(kernels, options);
    EXPECT_EQ(times[0].samples, 1);
    EXPECT_EQ(blocks["long"], (std::vector<std::int64_t>{1, 1, 1}));
}

TEST_F(ShortTimingTest, BlocksAreWholeRoundsOfSets) {
    options.sets = 7;
    const TimedCalls kernels[] = {taking("short", 10e-6), taking("longer", 100e-6)};
    const auto times = time_shortly(kernels, options);
    EXPECT_EQ(times[0].calls, 42);
    EXPECT_EQ(times[1].calls, 4) << "there is no time for a round";
}

TEST_F(ShortTimingTest, AClockThatJumpsOnceChangesNothing) {
    for (const double jump : {-3600.0, 3600.0, 0.0}) {
        for (int at = 0; at < 4; ++at) {
            int calls_made = 0;
            const TimedCalls jumping = [&](std::int64_t calls) -> Result<double> {
                return calls_made++ == at ? jump : static_cast<double>(calls) * 10e-6;
            };
            const TimedCalls kernels[] = {jumping, taking("steady", 11e-6)};
            const auto times = time_shortly(kernels, options);
            ASSERT_TRUE(times[0].status.ok()) << times[0].status.error().message;
            if (at > 0 || jump <= 0) {
                EXPECT_NEAR(times[0].seconds, 10e-6, 1e-9) << jump << " at " << at;
            }
        }
    }
}

TEST_F(ShortTimingTest, AClockThatStandsStillIsAnError) {
    const TimedCalls kernels[] = {taking("still", 0), taking("well", 1e-5)};
    const auto times = time_shortly(kernels, options);
    EXPECT_NE(times[0].status.error().message.find("clock"), std::string::npos);
    EXPECT_TRUE(times[1].status.ok() && times[1].seconds_again);
}

TEST_F(ShortTimingTest, AKernelThatFailsStopsNoOther) {
    int left = 2;
    const TimedCalls failing = [&](std::int64_t calls) -> Result<double> {
        if (left-- == 0) return Error{ErrorCode::device, "it burns"};
        return static_cast<double>(calls) * 1e-6;
    };
    const TimedCalls kernels[] = {failing, taking("well", 1e-3)};
    std::vector<std::size_t> told;
    options.before = [&](std::size_t kernel) { told.push_back(kernel); };
    const auto times = time_shortly(kernels, options);
    EXPECT_EQ(times[0].status.error().message, "it burns");
    EXPECT_TRUE(times[1].status.ok() && times[1].seconds_again) << "nothing that counts is faster";
    EXPECT_EQ(told.size(), log.size() + 3) << "before every call";
}

}  // namespace
}  // namespace tilewise
