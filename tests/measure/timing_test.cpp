// SPDX-License-Identifier: MIT
#include "measure/timing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tilewise {
namespace {

// Time that passes only when a call says so.
struct FakeClock {
    double now = 100;

    TimingOptions options() {
        TimingOptions options;
        options.clock = [this] { return now; };
        return options;
    }
    TimedCall taking(double seconds) {
        return [this, seconds](int) { now += seconds; };
    }
};

TEST(Timing, MeasuresOneCall) {
    FakeClock clock;
    const TimingResult result = time_calls(clock.taking(3e-6), clock.options());
    EXPECT_NEAR(result.seconds, 3e-6, 1e-12);
    EXPECT_NEAR(result.fastest, 3e-6, 1e-12);
    EXPECT_NEAR(result.spread, 0, 1e-6);
    EXPECT_NEAR(double(result.calls_per_block), 667, 1) << "a block is long enough for the clock";
    EXPECT_EQ(result.samples.size(), 11u) << "and when the blocks agree, the least number of them will do";
}

TEST(Timing, ASlowCallIsABlock) {
    FakeClock clock;
    const TimingResult result = time_calls(clock.taking(0.2), clock.options());
    EXPECT_EQ(result.calls_per_block, 1);
    EXPECT_EQ(result.samples.size(), 3u) << "half a second is used up";
    FakeClock other;
    EXPECT_EQ(time_calls(other.taking(60), other.options()).samples.size(), 1u);
    EXPECT_NEAR(other.now, 100 + 120, 1e-6) << "one call to warm up and one block";
}

TEST(Timing, WarmsUpForTheTimeGiven) {
    FakeClock clock;
    TimingOptions options = clock.options();
    options.warmup_seconds = 0.3;
    double until = 0;
    int calls = 0;
    // Slow at first, as a CPU that has yet to raise its clock.
    const TimedCall call = [&](int) {
        ++calls;
        clock.now += clock.now < 100.25 ? 1e-3 : 1e-4;
        if (until == 0 && clock.now >= 100.3) until = clock.now;
    };
    const TimingResult result = time_calls(call, options);
    EXPECT_NEAR(result.seconds, 1e-4, 1e-9);
    EXPECT_GE(until, 100.3);
}

TEST(Timing, AFirstCallThatIsSlowDoesNotCount) {
    FakeClock clock;
    int calls = 0;
    const TimedCall call = [&](int) { clock.now += calls++ == 0 ? 0.015 : 1e-5; };
    const TimingResult result = time_calls(call, clock.options());
    EXPECT_NEAR(result.seconds, 1e-5, 1e-9);
    EXPECT_NEAR(double(result.calls_per_block), 200, 1);
}

TEST(Timing, GoesOnWhileBlocksDisagree) {
    FakeClock clock;
    int calls = 0;
    const TimedCall noisy = [&](int) { clock.now += 0.003 * (1 + 0.5 * (calls++ % 4)); };
    const TimingResult result = time_calls(noisy, clock.options());
    EXPECT_GT(result.samples.size(), 50u);
    EXPECT_GT(result.spread, 0.1);
    TimingOptions few = clock.options();
    few.max_blocks = 20;
    EXPECT_EQ(time_calls(noisy, few).samples.size(), 20u);
}

TEST(Timing, TheMedianForgetsInterruptions) {
    FakeClock clock;
    int calls = 0;
    const TimedCall call = [&](int) { clock.now += ++calls % 5 == 0 ? 0.050 : 0.002; };
    const TimingResult result = time_calls(call, clock.options());
    EXPECT_NEAR(result.seconds, 0.002, 1e-9);
    EXPECT_NEAR(result.fastest, 0.002, 1e-9);
}

TEST(Timing, SetsTakeTurns) {
    FakeClock clock;
    TimingOptions options = clock.options();
    options.sets = 3;
    int expected = 0;
    bool in_turn = true;
    time_calls(
        [&](int set) {
            in_turn = in_turn && set == expected;
            expected = (expected + 1) % 3;
            clock.now += 1e-4;
        },
        options);
    EXPECT_TRUE(in_turn) << "across blocks and the warm-up, too";
}

TEST(Timing, BlocksAreWholeRoundsOfSetsAndBeginWithTheSame) {
    FakeClock clock;
    TimingOptions options = clock.options();
    options.sets = 7;
    std::vector<std::pair<std::int64_t, int>> blocks;
    const TimedBlock block = [&](std::int64_t calls, int first_set) {
        blocks.emplace_back(calls, first_set);
        return static_cast<double>(calls) * 1e-5;
    };
    const TimingResult result = interleave_blocks({&block, 1}, options).front();
    EXPECT_EQ(result.calls_per_block, 203) << "200 make 2 ms";
    ASSERT_GE(blocks.size(), result.samples.size());
    for (std::size_t i = blocks.size() - result.samples.size(); i < blocks.size(); ++i) {
        EXPECT_EQ(blocks[i], blocks[blocks.size() - result.samples.size()]) << "block " << i;
    }
    options.sets = 1000;
    EXPECT_EQ(interleave_blocks({&block, 1}, options).front().calls_per_block, 200) << "no time for a round";
}

TEST(Timing, InterleavedCallsAlternateAndKeepTheirPlaces) {
    FakeClock clock;
    std::string order;
    const auto call = [&](char name, double seconds) -> TimedCall {
        return [&, name, seconds](int) {
            order += name;
            clock.now += seconds;
        };
    };
    const TimedCall calls[] = {call('a', 0.004), call('b', 0.008), call('c', 0.016)};
    const auto results = interleave(calls, clock.options());
    ASSERT_EQ(results.size(), 3u);
    EXPECT_NEAR(results[0].seconds, 0.004, 1e-9);
    EXPECT_NEAR(results[1].seconds, 0.008, 1e-9);
    EXPECT_NEAR(results[2].seconds, 0.016, 1e-9);
    EXPECT_NE(order.find("abccbaabccba"), std::string::npos) << order;
}

TEST(Timing, InterleavedCallsMeetTheSameWeather) {
    FakeClock clock;
    const double begin = clock.now;
    // The machine slows down by half while measuring; a ratio must not notice.
    const auto call = [&](double seconds) -> TimedCall {
        return [&, seconds](int) { clock.now += seconds * (clock.now - begin < 0.25 ? 1 : 1.5); };
    };
    const TimedCall calls[] = {call(0.002), call(0.004)};
    const auto results = interleave(calls, clock.options());
    EXPECT_NEAR(results[1].seconds / results[0].seconds, 2, 0.05);
}

TEST(Timing, InterleavingASlowCallDoesNotStarveAQuickOne) {
    FakeClock clock;
    const TimedCall calls[] = {clock.taking(1), clock.taking(1e-5)};
    const auto results = interleave(calls, clock.options());
    EXPECT_EQ(results[0].samples.size(), 1u);
    EXPECT_GE(results[1].samples.size(), 11u);
}

TEST(Timing, RealTimePasses) {
    const double begin = monotonic_seconds();
    volatile double sink = 0;
    TimingOptions options;
    options.max_seconds = 0.05;
    const TimingResult result = time_calls(
        [&](int) {
            for (int i = 0; i < 1000; ++i) sink = sink + i;
        },
        options);
    EXPECT_GT(result.seconds, 0);
    EXPECT_LT(result.seconds, monotonic_seconds() - begin);
    EXPECT_GE(result.seconds, result.fastest);
}

TEST(Timing, WhatTakesNoTimeEnds) {
    const TimedBlock failed = [](std::int64_t, int) { return 0.0; };  // as a block does whose launches fail
    const auto results = interleave_blocks({&failed, 1});
    EXPECT_EQ(results[0].seconds, 0);
}

}  // namespace
}  // namespace tilewise
