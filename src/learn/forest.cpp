// SPDX-License-Identifier: MIT
#include "learn/forest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <memory>

namespace tilewise {
namespace {

constexpr double kLightGbmZero = 1e-35F;  // numbers that are no larger count as 0 where zeros are missing

// As LightGBM reads a category: its digits before the point; below 0 is none.
std::int64_t category_of(double x) {
    constexpr double kLeast = -1, kMost = 1 << 30;
    return !(x > kLeast && x < kMost) ? -1 : static_cast<std::int64_t>(x);
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
        : forest_(forest),
          passed_(std::make_unique_for_overwrite<Set[]>(forest.thresholds_.size() + forest.categories_.size() + 1)) {}

    // The first `shared` columns are the same for all rows.
    void read(const double* rows, std::size_t count, std::size_t shared) {
        const auto count_of = [&](std::size_t column) { return column < shared ? 1 : count; };
        for (std::size_t i = 0; i < forest_.columns_.size(); ++i) {
            const Column& column = forest_.columns_[i];
            if (column.end > column.begin) read_numbers(column, rows + i, count_of(i));
        }
        for (std::size_t i = 0; i < forest_.columns_.size(); ++i) {
            const Column& column = forest_.columns_[i];
            if (column.end_categories > column.begin_categories) read_categories(column, rows + i, count_of(i));
        }
    }

    const Set* passed() const { return passed_.get(); }

private:
    using Numbers = std::array<double, kSetSize>;
    using Places = std::array<std::uint32_t, kSetSize>;

    // One value stands for all rows.
    static Set set_of(std::size_t row, std::size_t count) { return count == 1 ? ~Set{0} : Set{1} << row; }

    void read_numbers(const Column& column, const double* values, std::size_t count) {
        const std::size_t tests = column.end - column.begin, stride = forest_.columns_.size();
        Numbers numbers;  // NOLINT: filled as far as it is read
        bool are_alike = true;
#pragma GCC unroll 4
        for (std::size_t row = 0; row < count; ++row) {
            const double value = values[row * stride];
            numbers[row] = std::isnan(value) ? 0 : value;
            are_alike &= numbers[row] == numbers[0];
        }
        // Kernels of one problem have many numbers in common.
        Set* at_most = &passed_[column.begin];
        Places below{};
        find_below(column, std::span(numbers).first(are_alike ? 1 : count), below);
        if (are_alike) {
            std::fill_n(at_most, below[0], 0);
            std::fill(at_most + below[0], at_most + tests, ~Set{0});
        } else {
            std::fill_n(at_most, tests + 1, 0);  // the last is the next column's, which is read later
            for (std::size_t row = 0; row < count; ++row) at_most[below[row]] |= Set{1} << row;
            for (std::size_t i = 1; i < tests; ++i) at_most[i] |= at_most[i - 1];
        }
        if (column.has_missing) send_missing(column, values, numbers, count);
    }

    // How many of the column's thresholds, which ascend, are below each number. All are looked up in step: one waits for the other
    // in no step, and there is no branch that nobody could foresee.
    void find_below(const Column& column, std::span<const double> numbers, Places& below) const {
        const double* thresholds = &forest_.thresholds_[column.begin];
        std::uint32_t left = column.end - column.begin;
        for (; left > 1; left -= left / 2) {
            const std::uint32_t half = left / 2;
#pragma GCC unroll 4
            for (std::size_t i = 0; i < numbers.size(); ++i)
                below[i] += half & -static_cast<std::uint32_t>(thresholds[below[i] + half - 1] < numbers[i]);
        }
#pragma GCC unroll 4
        for (std::size_t i = 0; i < numbers.size(); ++i)
            below[i] += static_cast<std::uint32_t>(thresholds[below[i]] < numbers[i]);
    }

    void send_missing(const Column& column, const double* values, const Numbers& numbers, std::size_t count) {
        Set zeros = 0, nans = 0;
        for (std::size_t row = 0; row < count; ++row) {
            if (std::isnan(values[row * forest_.columns_.size()])) nans |= set_of(row, count);
            if (std::abs(numbers[row]) <= kLightGbmZero) zeros |= set_of(row, count);
        }
        if (zeros == 0) return;
        const std::array<Set, 3> missing = {0, zeros, nans};  // by MissingValues
        for (std::size_t i = column.begin; i < column.end; ++i) {
            const auto [which, go_left] = forest_.missing_[i];
            const Set rows = missing[static_cast<std::size_t>(which)];
            passed_[i] = (passed_[i] & ~rows) | (go_left ? rows : 0);
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
            groups[at].rows |= set_of(row, count);
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
    std::unique_ptr<Set[]> passed_;  // by test
};

// Which leaf of a tree each row of a set is in: a byte for each, eight in a word.
class Forest::Walk {
public:
    using LeafOfRows = std::array<std::uint64_t, kSetSize / kAtOnce>;
    static constexpr std::size_t kTreesAtOnce = 4;

    Walk(const Set* passed, std::size_t count) : passed_(passed), all_(~Set{0} >> (kSetSize - count)) {}

    // Takes at most kTreesAtOnce. It walks all before it reads their leaves, which then have arrived in the cache.
    void find(std::span<const Tree> trees, const Node* nodes, LeafOfRows* leaf_of_rows) {
        for (std::size_t i = 0; i < trees.size(); ++i)
            go(nodes + trees[i].first_node, trees[i].leaf_count, reached_[i]);
        for (std::size_t i = 0; i < trees.size(); ++i) leaf_of_rows[i] = leaves(reached_[i], trees[i].leaf_count);
    }

private:
    // By node, and by leaf from kMostLeaves on: no node comes before its parent, and all have one.
    using Reached = std::array<Set, 2 * kMostLeaves>;

    void go(const Node* nodes, std::size_t leaf_count, Reached& reached) const {
        const Set* passed = passed_;
        reached[leaf_count == 1 ? kMostLeaves : 0] = all_;
#pragma GCC unroll 4
        for (std::size_t i = 0; i < leaf_count - 1; ++i) {
            const Node node = nodes[i];
            const Set here = reached[i], left = here & passed[node.test];
            reached[node.left] = left;
            reached[node.right] = here ^ left;
        }
    }

    static LeafOfRows leaves(const Reached& reached, std::size_t leaf_count) {
        LeafOfRows leaf_of_rows{};
        for (std::size_t begin = 0; begin < leaf_count; begin += kSomeLeaves) {
            const std::size_t count = std::min(kSomeLeaves, leaf_count - begin);
            // Kernels of one problem are in few of the leaves.
            for (std::uint64_t left = not_empty(&reached[kMostLeaves + begin], count); left != 0; left &= left - 1) {
                const std::size_t leaf = begin + static_cast<std::size_t>(std::countr_zero(left));
                const Set rows = reached[kMostLeaves + leaf];
#pragma GCC unroll 4
                for (std::size_t word = 0; word < leaf_of_rows.size(); ++word)
                    leaf_of_rows[word] |= kSpread[rows >> (kAtOnce * word) & 0xFF] * leaf;
            }
        }
        return leaf_of_rows;
    }

    static constexpr std::size_t kSomeLeaves = 64, kBits = 32;
    using Four [[gnu::vector_size(4 * sizeof(Set))]] = Set;
    static constexpr auto kEachBit = [] {
        std::array<Set, kBits> bits{};
        for (std::size_t i = 0; i < kBits; ++i) bits[i] = Set{1} << i;
        return bits;
    }();

    // A bit for each set that is not empty, four of them at a time.
    static std::uint64_t not_empty(const Set* sets, std::size_t count) {
        std::uint64_t bits = 0;
        for (std::size_t begin = 0; begin < count; begin += kBits) {
            Four taken{};
#pragma GCC unroll 8
            for (std::size_t i = 0; i < kBits / 4; ++i) {
                Four four, bit;
                std::memcpy(&four, sets + begin + 4 * i, sizeof four);
                std::memcpy(&bit, &kEachBit[4 * i], sizeof bit);
                taken |= bit & static_cast<Four>(four != 0);
            }
            bits |= std::uint64_t{taken[0] | taken[1] | taken[2] | taken[3]} << begin;
        }
        return bits & (~std::uint64_t{0} >> (kSomeLeaves - count));
    }

    const Set* passed_;
    Set all_;                                    // rows that there are
    std::array<Reached, kTreesAtOnce> reached_;  // NOLINT: filled as far as it is read
};

void Forest::score_set(const double* rows, std::size_t count, std::size_t shared, double* sums, Batch& batch) const {
    batch.read(rows, count, shared);
    Walk walk(batch.passed(), count);
    std::array<double, kSetSize> all_sums{};
    std::array<Walk::LeafOfRows, Walk::kTreesAtOnce> leaf_of_rows;  // NOLINT: filled as far as it is read
    for (std::size_t begin = 0; begin < trees_.size(); begin += Walk::kTreesAtOnce) {
        const auto trees = std::span(trees_).subspan(begin, std::min(Walk::kTreesAtOnce, trees_.size() - begin));
        walk.find(trees, nodes_.data(), leaf_of_rows.data());
        for (std::size_t word = 0; word * kAtOnce < count; ++word) {
            std::array<double, kAtOnce> eight;  // in registers
            std::copy_n(&all_sums[word * kAtOnce], kAtOnce, eight.begin());
            for (std::size_t i = 0; i < trees.size(); ++i) {
                const double* leaves = &leaves_[trees[i].first_leaf];
                const std::uint64_t places = leaf_of_rows[i][word];
#pragma GCC unroll 8
                for (std::size_t row = 0; row < kAtOnce; ++row) eight[row] += leaves[places >> (8 * row) & 0xFF];
            }
            std::copy_n(eight.begin(), kAtOnce, &all_sums[word * kAtOnce]);
        }
    }
    std::copy_n(all_sums.begin(), count, sums);
}

void Forest::score(std::span<const double> rows, std::span<double> sums, std::size_t shared) const {
    assert(rows.size() == sums.size() * column_count());
    Batch batch(*this);
    for (std::size_t begin = 0; begin < sums.size(); begin += kSetSize) {
        const std::size_t count = std::min(kSetSize, sums.size() - begin);
        score_set(&rows[begin * column_count()], count, shared, &sums[begin], batch);
    }
}

}  // namespace tilewise
