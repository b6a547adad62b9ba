// SPDX-License-Identifier: MIT
// LightGBM's text: lines "key=value" of the whole, then of each tree, until "end of trees". Whatever a number may lead to is checked here,
// so that scoring checks nothing.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "learn/forest.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kShown = 40;  // characters of a bad value

std::optional<double> parse_number(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
    return number;
}

// Objectives whose sums are what they predict.
constexpr std::string_view kPlainObjectives[] = {"regression", "regression_l1", "huber",  "fair",
                                                 "quantile",   "mape",          "custom", "none"};

}  // namespace

class ForestParser {
public:
    ForestParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    Result<Forest> parse() {
        if (text_.size() > Forest::kMostBytes) {
            return usage_error(
                fmt::format("'{}' has {} bytes; a model has at most {}: train with fewer trees or leaves", file_,
                            text_.size(), Forest::kMostBytes));
        }
        read_header();
        while (!error_ && line_ == fmt::format("Tree={}", forest_.trees_.size())) read_tree();
        if (!error_ && line_ != "end of trees")
            fail(fmt::format("have '{}'; need the next tree or 'end of trees'", shown()));
        if (!error_ && forest_.trees_.empty()) fail("have no tree; need one or more");
        if (error_) return *error_;
        number_tests();
        return std::move(forest_);
    }

private:
    using Block = std::map<std::string_view, std::string_view>;

    void fail(const std::string& what) {
        if (error_) return;
        error_ = usage_error(
            fmt::format("'{}', line {}: {}; a whole text of LightGBM's save_model is read", file_, line_number_, what));
    }
    std::string shown() const { return std::string(line_.substr(0, kShown)); }

    bool next_line() {
        if (at_ >= text_.size()) {
            line_ = {};
            fail("the text ends here, before 'end of trees'");
            return false;
        }
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        line_ = text_.substr(at_, end - at_);
        if (line_.ends_with('\r')) line_.remove_suffix(1);
        at_ = end + 1;
        ++line_number_;
        return true;
    }

    // Lines "key=value" up to the next tree or the end, which is then the line that is looked at.
    Block read_block() {
        Block values;
        while (!error_ && next_line()) {
            if (line_.starts_with("Tree=") || line_ == "end of trees") break;
            const std::size_t sign = line_.find('=');
            values.emplace(line_.substr(0, sign), sign == std::string_view::npos ? "" : line_.substr(sign + 1));
        }
        return values;
    }

    void need(const Block& block, std::string_view key, std::string_view value) {
        const auto found = block.find(key);
        if (found != block.end() && found->second == value) return;
        fail(fmt::format("have {} '{}'; need {}", key,
                         found == block.end() ? "" : std::string(found->second.substr(0, kShown)), value));
    }

    void read_header() {
        if (!next_line() || line_ != "tree")
            return fail(fmt::format("have '{}'; need 'tree', as LightGBM begins", shown()));
        const auto header = read_block();
        need(header, "num_class", "1");
        need(header, "num_tree_per_iteration", "1");
        if (header.contains("average_output")) fail("have averaged trees (boosting rf); need added ones (gbdt)");
        const auto objective = header.find("objective");
        if (objective != header.end() &&
            std::ranges::find(kPlainObjectives, objective->second) == std::end(kPlainObjectives)) {
            fail(fmt::format("have objective '{}'; need one whose sums are the prediction, such as regression",
                             objective->second.substr(0, kShown)));
        }
        const auto names = header.find("feature_names");
        if (names == header.end() || names->second.empty())
            return fail("have no feature_names; need one for each column");
        for (const std::string_view name : split(names->second, ' ')) forest_.names_.emplace_back(name);
        if (forest_.names_.size() > kMostColumns) {
            return fail(fmt::format("have {} columns; need at most {}", forest_.names_.size(), kMostColumns));
        }
        need(header, "max_feature_idx", std::to_string(forest_.names_.size() - 1));
        forest_.columns_.resize(forest_.names_.size());
    }

    // Numbers of one line, as many as `count`.
    template <class T>
    std::vector<T> numbers(const Block& block, std::string_view key, std::size_t count, double least, double most) {
        std::vector<T> all;
        const auto found = block.find(key);
        const std::string_view text = found == block.end() ? "" : found->second;
        if (!text.empty()) {
            for (const std::string_view word : split(text, ' ')) {
                const auto number = parse_number(word);
                const bool is_whole = number && std::floor(*number) == *number;
                if (!number || *number < least || *number > most || (std::is_integral_v<T> && !is_whole)) {
                    fail(fmt::format("have '{}' in {}; need a number from {} to {}", word.substr(0, kShown), key, least,
                                     most));
                    return std::vector<T>(count);
                }
                all.push_back(static_cast<T>(*number));
            }
        }
        if (all.size() != count) fail(fmt::format("have {} numbers in {}; need {}", all.size(), key, count));
        all.resize(count);
        return all;
    }
    std::size_t number(const Block& block, std::string_view key, double least, double most) {
        return static_cast<std::size_t>(numbers<std::int64_t>(block, key, 1, least, most).front());
    }

    // What a node asks of a row.
    struct Test {
        bool is_categorical = false;
        std::uint16_t column = 0;
        double threshold = 0;
        Forest::Missing missing{};
        std::vector<std::uint32_t> words{};  // bits of categories

        // NOLINTNEXTLINE(modernize-use-nullptr): the compiler compares its own result with 0
        auto operator<=>(const Test&) const = default;
    };
    using Lists = std::vector<std::vector<std::uint32_t>>;

    void read_tree() {
        if (forest_.trees_.size() == Forest::kMostTrees) {
            return fail(fmt::format("have more trees; need at most {}", Forest::kMostTrees));
        }
        const Block block = read_block();
        const std::size_t leaves = number(block, "num_leaves", 1, Forest::kMostLeaves);
        if (error_) return;
        if (block.contains("is_linear")) need(block, "is_linear", "0");
        const auto values = numbers<double>(block, "leaf_value", leaves, -kAny, kAny);
        forest_.trees_.push_back({static_cast<std::uint32_t>(forest_.nodes_.size()),
                                  static_cast<std::uint32_t>(forest_.leaves_.size()),
                                  static_cast<std::uint16_t>(leaves)});
        forest_.leaves_.insert(forest_.leaves_.end(), values.begin(), values.end());
        const Lists lists = read_lists(block);
        read_tests(block, leaves - 1, lists);
        read_children(block, leaves - 1);
    }

    Lists read_lists(const Block& block) {
        constexpr std::uint32_t kMostWords = 64;  // of a list: 2048 categories
        constexpr double kMostWord = 4294967295.0;
        const std::size_t count = block.contains("num_cat") ? number(block, "num_cat", 0, Forest::kMostLeaves) : 0;
        Lists lists(count);
        if (count == 0) return lists;
        const auto ends =
            numbers<std::uint32_t>(block, "cat_boundaries", count + 1, 0, double{kMostWords} * Forest::kMostLeaves);
        if (!std::ranges::is_sorted(ends) || ends.front() != 0) fail("have cat_boundaries that do not ascend from 0");
        const auto is_long = [&](std::uint32_t begin, std::uint32_t end) { return end - begin > kMostWords; };
        if (std::ranges::adjacent_find(ends, is_long) != ends.end()) {
            fail(fmt::format("have a list of categories of more than {} words in cat_boundaries; need fewer",
                             kMostWords));
        }
        if (error_) return lists;
        const auto words = numbers<std::uint32_t>(block, "cat_threshold", ends.back(), 0, kMostWord);
        for (std::size_t i = 0; i < count; ++i) lists[i].assign(words.begin() + ends[i], words.begin() + ends[i + 1]);
        return lists;
    }

    void read_tests(const Block& block, std::size_t count, const Lists& lists) {
        constexpr int kCategorical = 1, kLeft = 2, kMissing = 4, kKinds = 3, kMost = 15;
        const auto column =
            numbers<std::uint16_t>(block, "split_feature", count, 0, static_cast<double>(forest_.names_.size()) - 1);
        const auto threshold = numbers<double>(block, "threshold", count, -kAny, kAny);
        const auto decision = numbers<int>(block, "decision_type", count, 0, kMost);
        for (std::size_t i = 0; i < count && !error_; ++i) {
            if (decision[i] / kMissing == kKinds) {
                return fail(fmt::format("have decision_type {}; need one of 0 to 11", decision[i]));
            }
            Test test{(decision[i] & kCategorical) != 0, column[i]};
            if (test.is_categorical) {
                if (!(threshold[i] >= 0 && threshold[i] < static_cast<double>(lists.size()))) {
                    return fail(fmt::format("have list {} of categories; need one of {}", threshold[i], lists.size()));
                }
                test.words = lists[static_cast<std::size_t>(threshold[i])];
            } else {
                test.threshold = threshold[i];
                test.missing = {static_cast<MissingValues>(decision[i] / kMissing), (decision[i] & kLeft) != 0};
            }
            tests_.push_back(std::move(test));
        }
    }

    // Below 0: leaf ~child. A node comes after its parent, so that one look at each in order is enough.
    void read_children(const Block& block, std::size_t count) {
        const double last_node = static_cast<double>(count) - 1, last_leaf = -static_cast<double>(count) - 1;
        const auto left = numbers<int>(block, "left_child", count, last_leaf, last_node);
        const auto right = numbers<int>(block, "right_child", count, last_leaf, last_node);
        std::vector<int> parents(Forest::kMostLeaves * 2);
        for (std::size_t i = 0; i < count && !error_; ++i) {
            for (const int child : {left[i], right[i]}) {
                if (child >= 0 && child <= static_cast<int>(i)) {
                    fail(fmt::format("have child {} of node {}; need a later one, or a leaf", child, i));
                }
                ++parents[place_of(child)];
            }
            forest_.nodes_.push_back(
                {static_cast<std::uint32_t>(forest_.nodes_.size()), place_of(left[i]), place_of(right[i])});
        }
        for (std::size_t i = 0; i < parents.size() && count > 0 && !error_; ++i) {
            const bool is_there =
                (i > 0 && i < count) || (i >= Forest::kMostLeaves && i <= Forest::kMostLeaves + count);
            if (parents[i] != (is_there ? 1 : 0)) {
                fail(fmt::format("have {} ways to a node or leaf; need {}", parents[i], is_there ? 1 : 0));
            }
        }
    }
    static std::uint16_t place_of(int child) {
        return static_cast<std::uint16_t>(child >= 0 ? child : static_cast<int>(Forest::kMostLeaves) + ~child);
    }

    // Every test once, in the order in which they are numbered.
    void number_tests() {
        std::vector<Test> sorted = tests_;
        std::ranges::sort(sorted, std::less());
        sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
        for (const Test& test : sorted) {
            Forest::Column& column = forest_.columns_[test.column];
            if (test.is_categorical) {
                add_to(column.begin_categories, column.end_categories, forest_.categories_.size());
                const auto begin = static_cast<std::uint32_t>(forest_.category_bits_.size());
                forest_.category_bits_.insert(forest_.category_bits_.end(), test.words.begin(), test.words.end());
                forest_.categories_.push_back({begin, static_cast<std::uint32_t>(forest_.category_bits_.size())});
            } else {
                add_to(column.begin, column.end, forest_.thresholds_.size());
                forest_.thresholds_.push_back(test.threshold);
                forest_.missing_.push_back(test.missing);
                column.has_missing |= test.missing.which != MissingValues::none;
            }
        }
        for (Forest::Node& node : forest_.nodes_) {
            const auto found = std::ranges::lower_bound(sorted, tests_[node.test], std::less());
            node.test = static_cast<std::uint32_t>(found - sorted.begin());
        }
    }
    static void add_to(std::uint32_t& begin, std::uint32_t& end, std::size_t place) {
        if (begin == end) begin = static_cast<std::uint32_t>(place);
        end = static_cast<std::uint32_t>(place) + 1;
    }

    static constexpr double kAny = 1e308;
    static constexpr std::size_t kMostColumns = 1024;

    std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
    std::string_view line_{};
    int line_number_ = 0;
    std::optional<Error> error_{};
    Forest forest_{};
    std::vector<Test> tests_{};  // of nodes, as they come
};

Result<Forest> Forest::parse(std::string_view text, const std::string& file) {
    return ForestParser(text, file).parse();
}

}  // namespace tilewise
