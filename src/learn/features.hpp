// SPDX-License-Identifier: MIT
// What a learned model sees of a kernel that may run a problem, as a row of numbers: the problem, the fields of the config as the field
// table has them, and the parts of the work that the analytic model prices. The columns have a fixed order and a digest, so that a model
// is used with the features that it was trained on and no others. A field or a word that is added appears by itself.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/work_parts.hpp"
#include "config/kernel_config.hpp"
#include "family/work_problem.hpp"

namespace tilewise {

inline constexpr int kFeatureSchema = 1;
inline constexpr std::size_t kMostFeatures = 64;

struct FeatureColumn {
    std::string name;
    std::vector<std::string_view> words{};  // of a category: a value is the place of its word
    bool is_ranged = false;                 // a size of the problem, in octaves
};

struct FeatureSchema {
    std::vector<FeatureColumn> columns;
    std::string hash;  // of names and words, 16 hex digits
};
// The convolutions share theirs.
const FeatureSchema& feature_schema(Op op);
Json schema_to_json(const FeatureSchema& schema, Op op);  // {schema, op, hash, names, categorical, words, ranged}

// Rows of one problem: what all its kernels have in common is worked out once. The problem must outlive this.
class ProblemFeatures {
public:
    explicit ProblemFeatures(const WorkProblem& problem);

    // The row of a kernel with that analytic time and those parts; as many numbers as there are columns. Allocates nothing.
    void fill(const KernelConfig& config, double analytic_us, const WorkParts& parts, double* row) const;

    double operator[](std::size_t column) const { return shared_[column]; }  // of the problem's own, which come first
    std::size_t size() const { return shared_count_; }
    Op op() const { return problem_.view.problem.op; }

private:
    static constexpr std::size_t kMostShared = 16;

    const WorkProblem& problem_;
    double roof_us_;
    std::array<double, kMostShared> shared_{};
    std::size_t shared_count_ = 0;
};

}  // namespace tilewise
