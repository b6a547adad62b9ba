// SPDX-License-Identifier: MIT
// Small learned models for tests: one tree with one test, and a card that fits it.
#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.hpp"
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

// As large a model as is shipped: trees of 31 leaves that ask about any column.
inline std::string many_tests(Op op, int trees, std::uint64_t seed) {
    constexpr int kLeaves = 31;
    Random random(seed);
    const auto& columns = feature_schema(op).columns;
    std::string text = one_test(op, columns.front().name, 0, 0, 0);
    text.resize(text.find("Tree=0"));
    for (int tree = 0; tree < trees; ++tree) {
        std::string column, threshold, left, right, leaf;
        // Each node hangs below a random open end of those before it, whose leaf it takes over.
        std::vector<int> lefts(kLeaves - 1), rights(kLeaves - 1);
        std::vector<int*> ends;
        for (int node = 0; node + 1 < kLeaves; ++node) {
            if (node > 0) {
                const auto end =
                    static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(ends.size()) - 1));
                *ends[end] = node;
                ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(end));
            }
            ends.push_back(&lefts[static_cast<std::size_t>(node)]);
            ends.push_back(&rights[static_cast<std::size_t>(node)]);
            column += fmt::format(" {}", random.between(0, static_cast<std::int64_t>(columns.size()) - 1));
            threshold += fmt::format(" {}", static_cast<double>(random.between(0, 1200)) / 100);
        }
        for (std::size_t i = 0; i < ends.size(); ++i) *ends[i] = -1 - static_cast<int>(i);
        std::string decision;
        for (int node = 0; node + 1 < kLeaves; ++node) {
            left += fmt::format(" {}", lefts[static_cast<std::size_t>(node)]);
            right += fmt::format(" {}", rights[static_cast<std::size_t>(node)]);
            decision += " 2";
        }
        for (int i = 0; i < kLeaves; ++i)
            leaf += fmt::format(" {}", static_cast<double>(random.between(-20, 20)) / 1e4);
        text += fmt::format(
            "Tree={}\nnum_leaves={}\nnum_cat=0\nsplit_feature={}\nthreshold={}\ndecision_type={}\nleft_child={}\n"
            "right_child={}\nleaf_value={}\nis_linear=0\nshrinkage=0.1\n\n\n",
            tree, kLeaves, column.substr(1), threshold.substr(1), decision.substr(1), left.substr(1), right.substr(1),
            leaf.substr(1));
    }
    return text + "end of trees\n";
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
