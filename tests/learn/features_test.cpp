// SPDX-License-Identifier: MIT
#include "learn/features.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "config/archs.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "learn/kernel_kind.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise {
namespace {

std::size_t place_of(Op op, std::string_view name) {
    const auto& columns = feature_schema(op).columns;
    const auto found = std::ranges::find(columns, name, &FeatureColumn::name);
    EXPECT_NE(found, columns.end()) << name;
    return static_cast<std::size_t>(found - columns.begin());
}

TEST(Features, TheSchemaHasNamesOnceAndRoomForMore) {
    for (const Op op : kAllOps) {
        std::set<std::string> names;
        for (const FeatureColumn& column : feature_schema(op).columns) names.insert(column.name);
        EXPECT_EQ(names.size(), feature_schema(op).columns.size());
        EXPECT_LE(names.size(), kMostFeatures);
        EXPECT_EQ(feature_schema(op).hash.size(), 16U);
    }
    EXPECT_EQ(feature_schema(Op::conv_fwd).hash, feature_schema(Op::conv_bwd_weight).hash);
    EXPECT_NE(feature_schema(Op::conv_fwd).hash, feature_schema(Op::gemm).hash);
}

// A field that is added appears by itself, under its own name or in the bits that convolutions share.
TEST(Features, EveryConfigFieldIsSeen) {
    for (const Op op : {Op::gemm, Op::conv_fwd}) {
        for (const ConfigField& field : config_fields()) {
            const bool is_given =
                field.role == Role::lead && (field.name == "op" || field.name == "dtype" || field.name == "layout" ||
                                             field.name == "ndim" || field.name == "arch");
            if (is_given || field.name == "dtype_b" || field.name == "dtype_out") continue;
            const bool is_shared = field.scope == Scope::conv && (field.type == "bool" || field.type == "Extents");
            if (is_shared || field.scope == (is_conv(op) ? Scope::gemm : Scope::conv)) continue;
            const auto& columns = feature_schema(op).columns;
            EXPECT_TRUE(std::ranges::any_of(columns, [&](const FeatureColumn& column) {
                return column.name == field.name || column.name == std::string(field.name) + "_m";
            })) << field.name;
        }
    }
}

TEST(Features, ARowSaysWhatItsColumnsAreCalled) {
    const ArchSpec& arch = arch_named("sm_90a");
    const Problem problem = *parse_problem("gemm:m=4096,n=1000,k=512,dtype=bf16,layout=rcr,lda=513");
    const WorkProblem work(problem, arch, 1);
    KernelConfig config;
    config.arch = arch.name, config.tile = {128, 64, 32}, config.pipeline = Pipeline::compv4, config.swap_ab = true;
    std::vector<double> row(feature_schema(Op::gemm).columns.size());
    WorkParts parts{};
    parts[static_cast<std::size_t>(WorkPart::rounds)] = 3;
    ProblemFeatures(work).fill(config, 50, parts, row.data());
    const auto value = [&](std::string_view name) { return row[place_of(Op::gemm, name)]; };
    EXPECT_EQ(value("log2_m"), 12);
    EXPECT_EQ(value("log2_rows_a"), 1);  // 1026 bytes
    EXPECT_EQ(value("log2_rows_b"), 4);  // as far as pointers are aligned
    EXPECT_EQ(value("tile_n"), 64);
    EXPECT_EQ(value("swap_ab"), 1);
    EXPECT_EQ(value("pipeline"), static_cast<double>(Pipeline::compv4));
    EXPECT_EQ(value("steps"), 16);
    EXPECT_EQ(value("work_rounds"), 3);
    EXPECT_NEAR(value("waste"), 8.0 * 128 * 64 * 64 / (4096 * 1000), 1e-12);  // swapped: n fills the rows
    EXPECT_NEAR(value("over_roof") * std::exp2(value("log2_roof_us")), 50, 1e-9);
}

// Kernels that may run a problem differ in more than what no price knows: no two of a pool have the same row.
TEST(Features, KernelsOfAPoolHaveRowsOfTheirOwn) {
    const char* const kProblems[] = {
        "gemm:m=4096,n=4096,k=4096,dtype=bf16,layout=rcr",
        "conv_fwd:n=8,c=256,k=256,in=28x28,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
        "conv_bwd_weight:n=8,g=64,c=64,k=64,in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc"};
    const ArchSpec& arch = arch_named("sm_90a");
    for (const char* text : kProblems) {
        const Problem problem = *parse_problem(text);
        const WorkProblem work(problem, arch, 1);
        const ProblemFeatures features(work);
        auto kernels = list_kernels(query_for(problem, arch, RuleSet::standard));
        ASSERT_TRUE(kernels.ok());
        std::map<std::vector<double>, std::string> rows;
        for (const Kernel& kernel : *kernels) {
            if (!kernel.available || !may_run(work.view, kernel.config, arch)) continue;
            std::vector<double> row(feature_schema(problem.op).columns.size());
            const double us = predicted_us(work, kernel.config);
            features.fill(kernel.config, us, work_parts_of(work, kernel.config), row.data());
            const auto [same, is_new] = rows.emplace(std::move(row), kernel.name);
            EXPECT_TRUE(is_new) << kernel.name << " as " << same->second;
            EXPECT_EQ(parse_kind(print_kind(kind_of(kernel.config))), kind_of(kernel.config)) << kernel.name;
        }
        EXPECT_GT(rows.size(), 20U) << text;
    }
}

TEST(Features, EveryFamilySaysItsParts) {
    for (const Family* family : families()) EXPECT_NE(family->work.parts, nullptr) << family->name();
}

// The number that notes the parts is the time itself.
TEST(Features, PartsAreNotedWithTheTime) {
    const ArchSpec& arch = arch_named("sm_90a");
    const Problem problem = *parse_problem("gemm:m=1000,n=2000,k=3000,dtype=bf16,layout=rcr");
    const WorkProblem work(problem, arch, 1);
    auto kernels = list_kernels(query_for(problem, arch, RuleSet::standard));
    ASSERT_TRUE(kernels.ok());
    int seen = 0;
    for (const Kernel& kernel : *kernels) {
        const Family* family = find_family(kernel.config, arch);
        if (!kernel.available || !family || family->searches || !may_run(work.view, kernel.config, arch)) continue;
        WorkParts parts;
        const NotedParts noted(parts);
        EXPECT_EQ(family->work.parts(work, kernel.config, nullptr).value, family->work.us(work, kernel.config, nullptr))
            << kernel.name;
        EXPECT_GT(parts[static_cast<std::size_t>(WorkPart::memory)], 0) << kernel.name;
        ++seen;
    }
    EXPECT_GT(seen, 20);
}

}  // namespace
}  // namespace tilewise
