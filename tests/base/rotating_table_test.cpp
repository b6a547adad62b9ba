// SPDX-License-Identifier: MIT
#include "base/rotating_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewise {
namespace {

using Numbers = RotatingTable<int, std::shared_ptr<const int>, std::hash<int>>;

TEST(RotatingTable, HoldsAtMostSoMany) {
    Numbers table(8);
    std::vector<std::weak_ptr<const int>> seen;
    for (int i = 0; i < 100; ++i) {
        const auto value = std::make_shared<const int>(i);
        seen.push_back(value);
        EXPECT_EQ(*table.add(i, value), i);
        EXPECT_LE(table.size(), table.most());
        EXPECT_EQ(*table.find(i)->value, i);
    }
    EXPECT_FALSE(table.find(0).has_value());
    EXPECT_TRUE(seen.front().expired()) << "what went is freed";
    EXPECT_FALSE(seen.back().expired());
}

TEST(RotatingTable, WhatIsAskedForStays) {
    Numbers table(8);
    table.add(-1, std::make_shared<const int>(-1));
    for (int i = 0; i < 100; ++i) {
        table.add(i, std::make_shared<const int>(i));
        const auto found = table.find(-1);
        ASSERT_TRUE(found.has_value()) << i;
        if (found->is_old) table.add(-1, found->value);
    }
}

TEST(RotatingTable, TheValueThatWasThereFirstStays) {
    Numbers table(4);
    const auto first = std::make_shared<const int>(1);
    table.add(7, first);
    EXPECT_EQ(table.add(7, std::make_shared<const int>(2)), first);
    table.add(8, nullptr), table.add(9, nullptr);  // now 7 is in the older table
    ASSERT_TRUE(table.find(7)->is_old);
    EXPECT_EQ(table.add(7, std::make_shared<const int>(3)), first);
}

TEST(RotatingTable, WhoReadsMeetsWholeValuesWhileOthersGo) {
    Numbers table(4);
    std::mutex adding;
    std::atomic<bool> done = false, wrong = false;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] {
            while (!done) {
                for (int key = 0; key < 16; ++key) {
                    const auto found = table.find(key);
                    if (found && *found->value != key) wrong = true;
                }
            }
        });
    }
    for (int i = 0; i < 20000; ++i) {
        const std::scoped_lock lock(adding);
        table.add(i % 16, std::make_shared<const int>(i % 16));
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace tilewise
