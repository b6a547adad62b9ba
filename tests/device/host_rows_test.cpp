// SPDX-License-Identifier: MIT
// Copying and clearing rows: every byte that was asked for, and no other.
#include "device/host_rows.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"

namespace tilewise {
namespace {

constexpr unsigned char kUntouched = 0xA5;

struct Case {
    RowCopy copy;
    std::vector<unsigned char> to, from, expected;
};

// Pitches with gaps or without, blocks likewise.
Case random_case(Random& random, std::int64_t most_bytes, std::int64_t most_rows) {
    Case c;
    RowCopy& copy = c.copy;
    copy.row_bytes = random.between(1, most_bytes);
    copy.rows = random.between(1, most_rows);
    copy.blocks = random.between(1, 4);
    const auto gap = [&] { return random.chance(40) ? 0 : random.between(1, 30); };
    copy.to_row_pitch = copy.row_bytes + gap(), copy.from_row_pitch = copy.row_bytes + gap();
    copy.to_block_pitch = copy.rows * copy.to_row_pitch + gap();
    copy.from_block_pitch = copy.rows * copy.from_row_pitch + gap();
    c.to.assign(static_cast<std::size_t>(copy.blocks * copy.to_block_pitch), kUntouched);
    c.from.resize(static_cast<std::size_t>(copy.blocks * copy.from_block_pitch));
    for (unsigned char& byte : c.from) byte = static_cast<unsigned char>(random.bits());
    c.expected = c.to;
    for (std::int64_t block = 0; block < copy.blocks; ++block)
        for (std::int64_t row = 0; row < copy.rows; ++row)
            for (std::int64_t i = 0; i < copy.row_bytes; ++i)
                c.expected[static_cast<std::size_t>(block * copy.to_block_pitch + row * copy.to_row_pitch + i)] =
                    c.from[static_cast<std::size_t>(block * copy.from_block_pitch + row * copy.from_row_pitch + i)];
    copy.to = c.to.data(), copy.from = c.from.data();
    return c;
}

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
