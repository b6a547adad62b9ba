// SPDX-License-Identifier: MIT
#include "base/growing_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "base/random.hpp"

namespace tilewise {
namespace {

struct WeakHash {  // so that unequal keys meet
    std::size_t operator()(int key) const { return static_cast<std::size_t>(key % 7); }
};

TEST(GrowingTable, IsAMapThatKeepsTheFirstValue) {
    GrowingTable<int, std::string, WeakHash> table;
    std::map<int, std::string> model;
    std::map<int, const std::string*> places;
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
        const int key = static_cast<int>(random.between(0, 299));
        const std::string value = std::to_string(i);
        EXPECT_EQ(table.add(key, value), model.emplace(key, value).first->second);
        places.emplace(key, table.find(key));
    }
    for (int key = 0; key < 300; ++key) {
        const std::string* found = table.find(key);
        ASSERT_EQ(found != nullptr, model.contains(key)) << key;
        if (!found) continue;
        EXPECT_EQ(*found, model[key]);
        EXPECT_EQ(found, places[key]) << "values do not move";
    }
    EXPECT_EQ(table.size(), model.size());
}

TEST(GrowingTable, IsReadWhileItGrows) {
    struct Hash {
        std::size_t operator()(int key) const { return static_cast<std::size_t>(key) * 0x9e3779b97f4a7c15u; }
    };
    constexpr int kKeys = 20000;
    GrowingTable<int, int, Hash> table;
    std::atomic<int> added{0};
    std::thread reader([&] {
        for (int seen = 0; seen < kKeys;) {
            const int until = added.load(std::memory_order_acquire);
            for (; seen < until; ++seen) {
                const int* value = table.find(seen);
                ASSERT_TRUE(value && *value == 3 * seen) << seen;
            }
            EXPECT_EQ(table.find(-1), nullptr);
        }
    });
    for (int key = 0; key < kKeys; ++key) {
        table.add(key, 3 * key);
        added.store(key + 1, std::memory_order_release);
    }
    reader.join();
}

}  // namespace
}  // namespace tilewise
