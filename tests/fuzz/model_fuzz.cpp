// SPDX-License-Identifier: MIT
// Learned models as text: trees that are read can be scored for any row, cards that are read are of this library's features; what is
// refused is named with its place.
#include <array>
#include <cmath>
#include <limits>

#include "fuzz.hpp"
#include "learn/model.hpp"

namespace {

using namespace tilewise;

std::string seed_trees() {
    return "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=1\nobjective="
           "regression\n"
           "feature_names=a b\nfeature_infos=[0:1] "
           "0:1:2\ntree_sizes=400\n\nTree=0\nnum_leaves=4\nnum_cat=1\nsplit_feature=0 1 0\n"
           "split_gain=3 2 1\nthreshold=0.5 0 1.5\ndecision_type=10 1 6\nleft_child=1 -1 -2\nright_child=2 -3 -4\n"
           "leaf_value=0.25 -0.5 1e-3 2\ncat_boundaries=0 2\ncat_threshold=5 1\nis_linear=0\nshrinkage=0.1\n\n"
           "Tree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=0.125\n\nend of trees\n\nparameters:\nend of parameters\n";
}

std::string seed_card() {
    std::string ranges;
    for (const FeatureColumn& column : feature_schema(Op::gemm).columns) {
        if (column.is_ranged) ranges += (ranges.empty() ? "\"" : ",\"") + column.name + "\":[0,12.5]";
    }
    return R"({"format":1,"op":"gemm","arch":"sm_90a","dtypes":["bf16","fp16"],"features":{"schema":1,"hash":")" +
           feature_schema(Op::gemm).hash + R"("},"target":"log_ratio","mean":-0.01,"ranges":{)" + ranges +
           R"(},"kinds":{"wgmma_gemm m64 swap":{"rows":100,"error":0.05}},"scores":{"mean":0.98}})";
}

void score(const Forest& forest) {
    constexpr std::array<double, 6> kValues = {0, -1, 1.5, 1e300, std::numeric_limits<double>::quiet_NaN(), 1e-36};
    constexpr std::size_t kRows = 40;
    std::vector<double> rows(kRows * forest.column_count()), sums(kRows);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = kValues[(i * 7 + i / 11) % kValues.size()];
    forest.score(rows, sums);
    double alone = 0;
    forest.score(std::span(rows).last(forest.column_count()), std::span(&alone, 1));
    require(alone == sums.back() || (std::isnan(alone) && std::isnan(sums.back())), "a row has one value");
}

}  // namespace

std::vector<std::string> fuzz_seeds() { return {seed_trees(), seed_card()}; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = as_text(data, size);
    if (const auto forest = Forest::parse(text, "fuzz.txt")) {
        score(*forest);
    } else {
        require(forest.error().message.starts_with("'fuzz.txt'"), "bad trees are named with their place");
    }
    if (const auto card = ModelCard::parse(text, "fuzz.json")) {
        require(!card->ranges.empty() && std::abs(card->mean) <= 3, "a card that is read has what is asked of it");
    } else {
        require(card.error().message.starts_with("fuzz.json"), "a bad card is named with its place");
    }
    return 0;
}
