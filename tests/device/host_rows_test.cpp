// SPDX-License-Identifier: MIT
// Copying and clearing rows: every byte that was asked for, and no other.
#include "device/host_rows.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "device/row_cases.hpp"

namespace tilewise {
namespace {

using namespace row_cases;

TEST(HostRows, CopyWhatWasAskedForAndNoMore) {
    Random random(5);
    for (int i = 0; i < 300; ++i) {
        Case c = random_case(random, 40, 9);
        copy_host_rows(c.copy, 1);
        ASSERT_EQ(c.to, c.expected);
    }
}

// Large enough to be shared among threads, by rows or, where these are few, by pieces of them.
TEST(HostRows, ThreadsShareLargeCopies) {
    Random random(6);
    for (int i = 0; i < 6; ++i) {
        Case c = i % 2 == 0 ? random_case(random, 200, 6000) : random_case(random, 1 << 20, 1);
        copy_host_rows(c.copy, 3);
        ASSERT_EQ(c.to, c.expected) << "copy " << i;
    }
}

TEST(HostRows, ClearTheStartOfEachRow) {
    for (const int threads : {1, 3}) {
        constexpr std::int64_t kPitch = 1000, kBytes = 700, kRows = 2000;
        std::vector<unsigned char> memory(kPitch * kRows, kUntouched);
        clear_host_rows(memory.data(), kPitch, kBytes, kRows, threads);
        for (std::size_t i = 0; i < memory.size(); ++i) {
            ASSERT_EQ(memory[i], static_cast<std::int64_t>(i) % kPitch < kBytes ? 0 : kUntouched) << i;
        }
    }
}

}  // namespace
}  // namespace tilewise
