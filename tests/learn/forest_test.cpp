// SPDX-License-Identifier: MIT
#include "learn/forest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/text.hpp"
#include "learn/test_model.hpp"

namespace tilewise {
namespace {

const std::string kGolden = std::string(TILEWISE_SOURCE_DIR) + "/tests/golden/learn/";

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

// What LightGBM 4 predicted for its own model: columns of features, then a prediction for each of two models.
struct Golden {
    std::vector<double> rows, predictions;
};
Golden golden(std::size_t model) {
    constexpr std::size_t kColumns = 5;
    Golden golden;
    std::ifstream file(kGolden + "predictions.csv");
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        const auto words = split(line, ',');
        for (std::size_t i = 0; i < kColumns; ++i)
            golden.rows.push_back(std::strtod(std::string(words[i]).c_str(), nullptr));
        golden.predictions.push_back(std::strtod(std::string(words[kColumns + model]).c_str(), nullptr));
    }
    return golden;
}

class ForestOf : public testing::TestWithParam<const char*> {};

// Categories, numbers that are missing, and zeros that count as missing.
TEST_P(ForestOf, LightGbmPredictsTheSame) {
    const std::string name = GetParam();
    const auto forest = Forest::parse(text_of(kGolden + name + ".txt"), name);
    ASSERT_TRUE(forest.ok()) << forest.error().message;
    EXPECT_EQ(forest->tree_count(), 8U);
    const Golden wanted = golden(name == "plain" ? 0 : 1);
    ASSERT_GT(wanted.predictions.size(), 50U);
    std::vector<double> sums(wanted.predictions.size());
    forest->score(wanted.rows, sums);
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], wanted.predictions[i], 1e-12) << i;
    // However many are scored at once.
    const std::size_t columns = forest->column_count();
    for (std::size_t i = 0; i < sums.size(); ++i) {
        double alone = 0;
        forest->score(std::span(wanted.rows).subspan(i * columns, columns), std::span(&alone, 1));
        EXPECT_EQ(alone, sums[i]);
    }
}
// Columns that all rows share are looked at once, whatever is in them.
TEST_P(ForestOf, SharedColumnsCountForAllRows) {
    const std::string name = GetParam();
    const auto forest = Forest::parse(text_of(kGolden + name + ".txt"), name);
    ASSERT_TRUE(forest.ok()) << forest.error().message;
    const Golden wanted = golden(0);
    const std::size_t columns = forest->column_count(), count = wanted.predictions.size();
    for (std::size_t shared = 1; shared <= columns; ++shared) {
        for (std::size_t of = 0; of < count; ++of) {
            std::vector<double> rows = wanted.rows, each(count), sums(count);
            for (std::size_t i = 0; i < count; ++i) std::copy_n(&wanted.rows[of * columns], shared, &rows[i * columns]);
            forest->score(rows, each);
            forest->score(rows, sums, shared);
            ASSERT_EQ(each, sums) << of << " " << shared;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Golden, ForestOf, testing::Values("plain", "zeros_missing"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Forest, ATreeOfOneLeafIsANumber) {
    const std::string text =
        "tree\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\nfeature_names=x\n\n"
        "Tree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=0.25\n\nend of trees\n";
    const auto forest = Forest::parse(text, "one");
    ASSERT_TRUE(forest.ok()) << forest.error().message;
    const double rows[] = {1, NAN};
    double sums[] = {0, 0};
    forest->score(rows, sums);
    EXPECT_EQ(sums[0], 0.25);
    EXPECT_EQ(sums[1], 0.25);
}

// Every text that is cut off is refused, and so is whatever no tree can be: each with its place.
TEST(Forest, AMalformedTextIsRefusedWithItsPlace) {
    const std::string whole = text_of(kGolden + "plain.txt");
    for (std::size_t length = 0; length + 1 < whole.size(); length += 61) {
        const auto cut = Forest::parse(std::string_view(whole).substr(0, length), "cut");
        if (!cut) continue;
        EXPECT_NE(std::string_view(whole).substr(0, length).find("end of trees"), std::string::npos) << length;
    }
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = one_test(Op::gemm, "tile_m", 64, -0.5, 0.5);
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return text.replace(at, from.size(), to);
    };
    const std::pair<std::string, std::string> kBroken[] = {
        {with("tree\n", "{\n"), "need 'tree'"},
        {with("num_class=1", "num_class=3"), "have num_class '3'; need 1"},
        {with("objective=regression", "objective=binary sigmoid:1"), "have objective 'binary sigmoid:1'"},
        {with("label_index=0", "average_output"), "averaged trees"},
        {with("is_linear=0", "is_linear=1"), "have is_linear '1'; need 0"},
        {with("left_child=-1", "left_child=-3"), "have '-3' in left_child"},
        {with("left_child=-1", "left_child=0"), "have child 0 of node 0"},
        {with("left_child=-1", "left_child=-2"), "have 0 ways"},
        {with("leaf_value=-0.5 0.5", "leaf_value=-0.5"), "have 1 numbers in leaf_value; need 2"},
        {with("leaf_value=-0.5 0.5", "leaf_value=-0.5 inf"), "have 'inf' in leaf_value"},
        {with("split_feature=", "split_feature=9"), "in split_feature"},
        {with("decision_type=2", "decision_type=1"), "have list 64 of categories; need one of 0"},
        {with("decision_type=2", "decision_type=14"), "have decision_type 14"},
        // A text of a megabyte must not become gigabytes of lists that its nodes share.
        {with("num_cat=0", "num_cat=1\ncat_boundaries=0 65"), "list of categories of more than 64 words"},
        {with("num_leaves=2", "num_leaves=1000"), "have '1000' in num_leaves"},
        {with("end of trees", "Tree=7"), "have 'Tree=7'"},
    };
    for (const auto& [text, what] : kBroken) {
        const auto forest = Forest::parse(text, "file");
        ASSERT_FALSE(forest.ok()) << what;
        EXPECT_TRUE(forest.error().message.starts_with("'file', line ")) << forest.error().message;
        EXPECT_NE(forest.error().message.find(what), std::string::npos) << forest.error().message;
    }
    const auto large = Forest::parse(std::string(Forest::kMostBytes + 1, 'x'), "large");
    ASSERT_FALSE(large.ok());
    EXPECT_NE(large.error().message.find("at most 1048576"), std::string::npos) << large.error().message;
}

}  // namespace
}  // namespace tilewise
