// SPDX-License-Identifier: MIT
// Random copies of rows with what they must leave, for the tests of every device.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "device/device.hpp"

namespace tilewise::row_cases {

inline constexpr unsigned char kUntouched = 0xA5;

struct Case {
    RowCopy copy;
    std::vector<unsigned char> to, from, expected;
};

// Pitches with gaps or without, blocks likewise; rows or blocks that are read may overlap.
inline Case random_case(Random& random, std::int64_t most_bytes, std::int64_t most_rows) {
    Case c;
    RowCopy& copy = c.copy;
    copy.row_bytes = random.between(1, most_bytes);
    copy.rows = random.between(1, most_rows);
    copy.blocks = random.between(1, 4);
    const auto gap = [&] { return random.chance(40) ? 0 : random.between(1, 30); };
    copy.to_row_pitch = copy.row_bytes + gap(), copy.from_row_pitch = copy.row_bytes + gap();
    copy.to_block_pitch = copy.rows * copy.to_row_pitch + gap();
    copy.from_block_pitch = copy.rows * copy.from_row_pitch + gap();
    if (random.chance(20)) copy.from_row_pitch = random.between(0, copy.row_bytes);
    if (random.chance(20)) copy.from_block_pitch = random.between(0, copy.from_block_pitch);
    c.to.assign(static_cast<std::size_t>(copy.blocks * copy.to_block_pitch), kUntouched);
    c.from.resize(static_cast<std::size_t>((copy.blocks - 1) * copy.from_block_pitch +
                                           (copy.rows - 1) * copy.from_row_pitch + copy.row_bytes));
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

}  // namespace tilewise::row_cases
