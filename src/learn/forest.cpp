// SPDX-License-Identifier: MIT
#include "learn/forest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace tilewise {
namespace {

constexpr double kLightGbmZero = 1e-35F;  // numbers that are no larger count as 0 where zeros are missing

// How many of the ascending thresholds are below x.
std::size_t count_below(const double* thresholds, std::size_t count, double x) {
    const double* at = thresholds;
    while (count > 1) {
        const std::size_t half = count / 2;
        at += half & -static_cast<std::size_t>(at[half - 1] < x);  // no branch, which nobody could foresee
        count -= half;
    }
    return static_cast<std::size_t>(at - thresholds) + (count == 1 && *at < x ? 1 : 0);
}

// As LightGBM reads a category: its digits before the point; below 0 is none.
std::int64_t category_of(double x) {
    constexpr double kLeast = -1, kMost = 1 << 30;
    return !(x > kLeast && x < kMost) ? -1 : static_cast<std::int64_t>(x);
}

// The number of a leaf in binary: a plane for each digit, with the rows whose leaf has a 1 there.
constexpr std::size_t kDigits = 8;
using Planes = std::array<std::uint32_t, kDigits>;

using Half [[gnu::vector_size(kDigits / 2 * sizeof(std::uint32_t))]] = std::uint32_t;

constexpr auto kDigitsOfLeaf = [] {
    std::array<Planes, Forest::kMostLeaves> masks{};
    for (std::size_t leaf = 0; leaf < masks.size(); ++leaf) {
        for (std::size_t digit = 0; digit < kDigits; ++digit) masks[leaf][digit] = (leaf >> digit & 1) != 0 ? ~0U : 0;
    }
    return masks;
}();

Planes planes_of(const std::uint32_t* reached, std::size_t leaf_count) {
    Half low{}, high{};
    for (std::size_t i = 0; i < leaf_count; ++i) {
        Half low_digits, high_digits;
        std::memcpy(&low_digits, &kDigitsOfLeaf[i][0], sizeof low_digits);
        std::memcpy(&high_digits, &kDigitsOfLeaf[i][kDigits / 2], sizeof high_digits);
        low |= low_digits & reached[i];
        high |= high_digits & reached[i];
    }
    Planes planes;
    std::memcpy(&planes[0], &low, sizeof low);
    std::memcpy(&planes[kDigits / 2], &high, sizeof high);
    return planes;
}

// The bits of a byte, each in a byte of its own.
constexpr auto kSpread = [] {
    std::array<std::uint64_t, 256> spread{};
    for (std::size_t byte = 0; byte < spread.size(); ++byte) {
        for (std::size_t bit = 0; bit < 8; ++bit) spread[byte] |= std::uint64_t{byte >> bit & 1} << (8 * bit);
    }
    return spread;
}();

}  // namespace

// Which rows of a set pass which tests.
class Forest::Batch {
public:
    explicit Batch(const Forest& forest)
        : forest_(forest), passed_(forest.thresholds_.size() + forest.categories_.size()) {}

    void read(const double* rows, std::size_t count) {
        std::fill_n(passed_.begin(), forest_.thresholds_.size(), 0);
        for (std::size_t i = 0; i < forest_.columns_.size(); ++i) {
            const Column& column = forest_.columns_[i];
            if (column.end > column.begin) read_numbers(column, rows + i, count);
            if (column.end_categories > column.begin_categories) read_categories(column, rows + i, count);
        }
    }

    const Set* passed() const { return passed_.data(); }

private:
    void read_numbers(const Column& column, const double* values, std::size_t count) {
        const double* thresholds = &forest_.thresholds_[column.begin];
        const std::size_t tests = column.end - column.begin;
        Set* at_most = &passed_[column.begin];
        Set zeros = 0, nans = 0;
        std::size_t below = tests;
        double last = std::nan("");
        for (std::size_t row = 0; row < count; ++row) {
            const double value = values[row * forest_.columns_.size()];
            const double x = std::isnan(value) ? 0 : value;
            // Kernels of one problem have many numbers in common.
            if (x != last) below = count_below(thresholds, tests, x), last = x;
            const Set bit = Set{1} << row;
            if (below < tests) at_most[below] |= bit;
            nans |= std::isnan(value) ? bit : 0;
            zeros |= std::abs(x) <= kLightGbmZero ? bit : 0;
        }
        for (std::size_t i = 1; i < tests; ++i) at_most[i] |= at_most[i - 1];
        if (zeros == 0) return;
        const std::array<Set, 3> missing = {0, zeros, nans};  // by MissingValues
        for (std::size_t i = 0; i < tests; ++i) {
            const auto [which, go_left] = forest_.missing_[column.begin + i];
            const Set rows = missing[static_cast<std::size_t>(which)];
            at_most[i] = (at_most[i] & ~rows) | (go_left ? rows : 0);
        }
    }

    void read_categories(const Column& column, const double* values, std::size_t count) {
        struct Group {
            std::size_t category;
            Set rows;
        };
        std::array<Group, kSetSize> groups;  // NOLINT: filled as far as it is read
        std::size_t group_count = 0;
        for (std::size_t row = 0; row < count; ++row) {
            const std::int64_t category = category_of(values[row * forest_.columns_.size()]);
            if (category < 0) continue;
            std::size_t at = 0;
            while (at < group_count && groups[at].category != static_cast<std::size_t>(category)) ++at;
            if (at == group_count) groups[group_count++] = {static_cast<std::size_t>(category), 0};
            groups[at].rows |= Set{1} << row;
        }
        constexpr std::size_t kBits = 32;
        for (std::size_t list = column.begin_categories; list < column.end_categories; ++list) {
            const auto [begin, end] = forest_.categories_[list];
            Set rows = 0;
            for (std::size_t i = 0; i < group_count; ++i) {
                const std::size_t word = groups[i].category / kBits, bit = groups[i].category % kBits;
                const bool is_listed = word < end - begin && (forest_.category_bits_[begin + word] >> bit & 1) != 0;
                rows |= is_listed ? groups[i].rows : 0;
            }
            passed_[forest_.thresholds_.size() + list] = rows;
        }
    }

    const Forest& forest_;
    std::vector<Set> passed_;  // by test
};

void Forest::score_set(const double* rows, std::size_t count, double* sums, Batch& batch) const {
    batch.read(rows, count);
    const Set* passed = batch.passed();
    std::array<double, kSetSize> all_sums{};
    std::array<Set, 2 * kMostLeaves> reached;  // NOLINT: no node comes before its parent, and all have one
    for (const Tree& tree : trees_) {
        const Node* nodes = nodes_.data() + tree.first_node;
        reached[tree.leaf_count == 1 ? kMostLeaves : 0] = ~Set{0};
        for (std::size_t i = 0; i + 1 < tree.leaf_count; ++i) {
            const Set here = reached[i], left = here & passed[nodes[i].test];
            reached[nodes[i].left] = left;
            reached[nodes[i].right] = here & ~left;
        }
        const Planes planes = planes_of(&reached[kMostLeaves], tree.leaf_count);
        const double* leaves = &leaves_[tree.first_leaf];
        const auto digits = static_cast<std::size_t>(std::bit_width(tree.leaf_count - 1U));
        constexpr std::size_t kAtOnce = 8;  // rows, a byte of each plane
        for (std::size_t row = 0; row < kSetSize; row += kAtOnce) {
            std::uint64_t leaf_of_rows = 0;
            for (std::size_t i = 0; i < digits; ++i) leaf_of_rows |= kSpread[planes[i] >> row & 0xFF] << i;
            for (std::size_t i = 0; i < kAtOnce; ++i) all_sums[row + i] += leaves[leaf_of_rows >> (8 * i) & 0xFF];
        }
    }
    std::copy_n(all_sums.begin(), count, sums);
}

void Forest::score(std::span<const double> rows, std::span<double> sums) const {
    assert(rows.size() == sums.size() * column_count());
    Batch batch(*this);
    for (std::size_t begin = 0; begin < sums.size(); begin += kSetSize) {
        const std::size_t count = std::min(kSetSize, sums.size() - begin);
        score_set(&rows[begin * column_count()], count, &sums[begin], batch);
    }
}

}  // namespace tilewise
