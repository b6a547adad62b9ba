// SPDX-License-Identifier: MIT
// Kernels for the registry tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "config/archs.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise {

// The kernels of a small rule set: all operations and types of one arch.
inline const std::vector<Kernel>& sample_kernels(std::string_view arch = "gfx942", RuleSet set = RuleSet::tiny) {
    static std::map<std::pair<std::string, RuleSet>, std::vector<Kernel>> made;
    std::vector<Kernel>& mine = made[{std::string(arch), set}];
    if (!mine.empty()) return mine;
    KernelQuery query;
    query.arch = &arch_named(arch);
    query.set = set;
    auto kernels = list_kernels(query);
    EXPECT_TRUE(kernels.ok());
    mine = std::move(*kernels);
    return mine;
}

inline std::vector<std::string> names_in(const Registry& registry) {
    std::vector<std::string> names;
    const auto snapshot = registry.kernels();
    for (const KernelPtr& kernel : *snapshot) names.push_back(kernel->name);
    return names;
}

}  // namespace tilewise
