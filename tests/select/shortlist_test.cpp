// SPDX-License-Identifier: MIT
// The shortlist is measured: the best first, nothing twice, and other ways to compute beside variants of the best.
#include "select/shortlist.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.hpp"

namespace tilewise {
namespace {

Candidate candidate(double us, int tile, bool swapped = false, int split = 1, int stages = 1) {
    KernelConfig config;
    config.tile = {tile, tile, 64};
    config.swap_ab = swapped;
    config.split_k = split;
    config.stages = stages;
    return {std::make_shared<const Kernel>(make_kernel(config, Priority::normal, true)), us};
}

bool has(const KernelList& list, const Candidate& one) {
    return std::find(list.begin(), list.end(), one.kernel) != list.end();
}

TEST(Shortlist, TakesTheFirstWithoutPredictions) {
    std::vector<Candidate> ranked;
    for (int i = 1; i <= 5; ++i) ranked.push_back(candidate(1, 64, false, 1, i));
    for (Candidate& one : ranked) one.predicted_us.reset();
    const KernelList list = shortlist(ranked, 3);
    ASSERT_EQ(list.size(), 3u);
    for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i], ranked[i].kernel);
}

TEST(Shortlist, LeavesRoomForOtherTilesAndAlgorithms) {
    std::vector<Candidate> ranked;
    for (int i = 1; i <= 20; ++i) ranked.push_back(candidate(10 + 0.01 * i, 128, false, 1, i));
    ranked.push_back(candidate(11, 64));
    ranked.push_back(candidate(15, 64, true));
    ranked.push_back(candidate(18, 64, false, 4));
    ranked.push_back(candidate(90, 64, true, 8));  // hopeless
    const KernelList list = shortlist(ranked, 8);
    EXPECT_EQ(list.size(), 8u);
    EXPECT_EQ(list.front(), ranked.front().kernel);
    for (std::size_t i : {20u, 21u, 22u}) EXPECT_TRUE(has(list, ranked[i])) << i;
    EXPECT_FALSE(has(list, ranked[23]));
}

TEST(Shortlist, TakesAsManyAsThereAreAndNoneTwice) {
    Random random(11);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<Candidate> ranked;
        const auto size = random.between(0, 40);
        for (std::int64_t i = 0; i < size; ++i) {
            ranked.push_back(candidate(1 + 0.1 * static_cast<double>(i), static_cast<int>(16 * random.between(1, 4)),
                                       random.chance(50), static_cast<int>(random.between(1, 3)),
                                       static_cast<int>(i) + 1));
        }
        const auto count = static_cast<std::size_t>(random.between(1, 12));
        const KernelList list = shortlist(ranked, count);
        EXPECT_EQ(list.size(), std::min(count, ranked.size()));
        EXPECT_EQ(std::set<KernelPtr>(list.begin(), list.end()).size(), list.size());
        if (!list.empty()) {
            EXPECT_EQ(list.front(), ranked.front().kernel);
        }
    }
}

}  // namespace
}  // namespace tilewise
