// SPDX-License-Identifier: MIT
// Tables of which element each register of a matrix instruction holds, derived from a few numbers of each instruction
// (tests/golden/hip/lane_blocks.txt). The lanes of a wave are blocks: lane number l of a block has row l of A and column l of B, the k
// of its own block, and column l of the sums, of which runs of neighbouring rows go from block to block in turn.
#pragma once

#include "kernels/golden_table.hpp"

namespace tilewise {

struct LaneBlocks {
    std::uint32_t run, runs, lanes, blocks, depth;  // depth: elements of a lane along k

    std::uint32_t side() const { return run * runs * blocks; }
    std::uint32_t whole_depth() const { return depth * blocks; }

    GoldenTable table() const {
        GoldenTable table;
        for (std::uint32_t lane = 0; lane < lanes * blocks; ++lane) {
            const std::uint32_t at = lane % lanes, block = lane / lanes;
            std::vector<std::uint32_t> row;
            for (std::uint32_t i = 0; i < run * runs; ++i) {
                row.push_back((i / run * run * blocks + block * run + i % run) << 8 | at);
            }
            for (std::uint32_t k = 0; k < depth; ++k) row.push_back(at << 8 | (block * depth + k));
            for (std::uint32_t k = 0; k < depth; ++k) row.push_back((block * depth + k) << 8 | at);
            table.keys.push_back(lane);
            table.rows.push_back(std::move(row));
        }
        return table;
    }
};

inline Result<LaneBlocks> read_lane_blocks(std::string_view folder, std::string_view instruction) {
    const auto text = read_file(golden_file(folder, "lane_blocks"));
    if (!text) return text.error();
    for (const std::string_view line : split(*text, '\n')) {
        const auto colon = line.find(": ");
        if (colon == line.npos || line.substr(0, colon) != instruction) continue;
        std::vector<std::uint32_t> numbers;
        for (const std::string_view word : split(line.substr(colon + 2), ' ')) {
            const auto number = parse_integer(word);
            if (!number) return usage_error(fmt::format("'{}' is no number", word));
            numbers.push_back(static_cast<std::uint32_t>(*number));
        }
        if (numbers.size() != 5) return usage_error(fmt::format("{} has {} numbers", instruction, numbers.size()));
        return LaneBlocks{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    }
    return usage_error(fmt::format("no blocks of {}", instruction));
}

}  // namespace tilewise
