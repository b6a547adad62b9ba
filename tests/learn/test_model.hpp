// SPDX-License-Identifier: MIT
// Small learned models for tests: one tree with one test, and a card that fits it.
#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "learn/features.hpp"
#include "learn/model.hpp"

namespace tilewise {

// Of the features of `op`: kernels with `column` at most `threshold` get `at_most` for a correction, others `above`.
inline std::string one_test(Op op, const std::string& column, double threshold, double at_most, double above) {
    std::string names;
    std::size_t place = 0;
    const auto& columns = feature_schema(op).columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        names += (i == 0 ? "" : " ") + columns[i].name;
        if (columns[i].name == column) place = i;
    }
    return fmt::format(
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx={}\nobjective="
        "regression\n"
        "feature_names={}\n\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature={}\nthreshold={}\ndecision_type=2\nleft_"
        "child=-1\n"
        "right_child=-2\nleaf_value={} {}\nis_linear=0\nshrinkage=1\n\n\nend of trees\n",
        columns.size() - 1, names, place, threshold, at_most, above);
}

// Sizes of 1 to 2^12, and these kinds, each 5 % off.
inline std::string card_text(Op op, const std::string& arch, const std::vector<std::string>& kinds, double mean = 0,
                             const std::string& dtypes = R"(["fp32"])") {
    std::string ranges, seen;
    for (const FeatureColumn& column : feature_schema(op).columns) {
        if (column.is_ranged) ranges += fmt::format(R"({}"{}":[0,12])", ranges.empty() ? "" : ",", column.name);
    }
    for (const std::string& kind : kinds) {
        seen += fmt::format(R"({}"{}":{{"rows":100,"error":0.05}})", seen.empty() ? "" : ",", kind);
    }
    return fmt::format(
        R"({{"format":1,"op":"{}","arch":"{}","dtypes":{},"features":{{"schema":1,"hash":"{}"}},"target":"log_ratio",)"
        R"("mean":{},"ranges":{{{}}},"kinds":{{{}}},"version":1}})",
        name_of(op), arch, dtypes, feature_schema(op).hash, mean, ranges, seen);
}

inline void write_model(const std::filesystem::path& folder, const std::string& card, const std::string& trees) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "model.json") << card;
    std::ofstream(folder / "model.txt") << trees;
}

}  // namespace tilewise
