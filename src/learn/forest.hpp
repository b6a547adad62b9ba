// SPDX-License-Identifier: MIT
// A sum of decision trees, as LightGBM writes it to a text file, and its value for rows of features. Rows are scored by sets of 32: the
// rows that a test sends left are bits of a word, found once for all trees that ask it, and a tree is walked with the sets that reach its
// nodes, without a branch. Sums are added up in LightGBM's order and kind of number, so that both agree.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

// What a test does with a row that has no number there: as if it were 0, or the way that is named. LightGBM has a third: also with a 0.
enum class MissingValues : std::uint8_t { none, zero, nan };

class Forest {
public:
    static constexpr std::size_t kMostTrees = 1024, kMostLeaves = 256;
    static constexpr std::size_t kMostBytes = 1 << 20;  // of a text

    // `file` is for messages.
    static Result<Forest> parse(std::string_view text, const std::string& file);

    std::size_t column_count() const { return names_.size(); }
    const std::vector<std::string>& names() const { return names_; }  // of the columns
    std::size_t tree_count() const { return trees_.size(); }

    // Rows of column_count numbers, one after the other; a sum for each. The first `shared` columns are the same in all rows.
    void score(std::span<const double> rows, std::span<double> sums, std::size_t shared = 0) const;

private:
    friend class ForestParser;
    static constexpr std::size_t kSetSize = 32, kAtOnce = 8;
    using Set = std::uint32_t;  // of rows

    // Tests are numbered: those of numbers first, by column and threshold, then those of categories.
    struct Column {
        std::uint32_t begin = 0, end = 0;                        // of its tests of numbers
        std::uint32_t begin_categories = 0, end_categories = 0;  // of lists of categories
        bool has_missing = false;                                // whether one of the numbers' tests treats some apart
    };
    struct Missing {
        MissingValues which = MissingValues::none;
        bool go_left = false;

        // NOLINTNEXTLINE(modernize-use-nullptr): the compiler compares its own result with 0
        auto operator<=>(const Missing&) const = default;
    };
    struct Categories {
        std::uint32_t begin, end;  // of words of bits
    };
    struct Node {
        std::uint32_t test = 0;
        std::uint16_t left = 0, right = 0;  // from kMostLeaves on: leaves
    };
    struct Tree {
        std::uint32_t first_node = 0, first_leaf = 0;
        std::uint16_t leaf_count = 0;  // one more than nodes
    };
    class Batch;
    class Walk;

    void score_set(const double* rows, std::size_t count, std::size_t shared, double* sums, Batch& batch) const;

    std::vector<std::string> names_;
    std::vector<Column> columns_;
    std::vector<double> thresholds_;  // of tests of numbers
    std::vector<Missing> missing_;    // likewise
    std::vector<Categories> categories_;
    std::vector<std::uint32_t> category_bits_;
    std::vector<Tree> trees_;
    std::vector<Node> nodes_;
    std::vector<double> leaves_;
};

}  // namespace tilewise
