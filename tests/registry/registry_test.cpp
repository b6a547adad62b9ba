// SPDX-License-Identifier: MIT
#include "registry/registry.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "registry/sample_kernels.hpp"

namespace tilewise {
namespace {

void shuffle(std::vector<Kernel>& kernels, Random& random) {
    for (std::size_t i = kernels.size() - 1; i > 0; --i) {
        std::swap(kernels[i], kernels[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i)))]);
    }
}

// Adds one kernel after the other, in each of the ways there are, and compares with the rule.
void expect_rule(const Kernel& there, const Kernel& comes) {
    const bool gets_code = comes.priority == there.priority && comes.available && !there.available;
    const bool replaced = comes.priority > there.priority || gets_code;
    for (int way = 0; way < 3; ++way) {
        Registry registry;
        ASSERT_EQ(registry.add(there), 1u);
        std::size_t taken = 0;
        if (way == 0) taken = registry.add(comes);
        if (way == 1) taken = registry.add(std::vector{comes});
        if (way == 2) {
            Registry other;
            other.add(comes);
            taken = registry.merge(other);
        }
        EXPECT_EQ(taken, replaced ? 1u : 0u);
        ASSERT_EQ(registry.size(), 1u);
        const Kernel& result = *registry.kernels()->front();
        EXPECT_EQ(result.available, (replaced ? comes : there).available);
        EXPECT_EQ(result.priority, (replaced ? comes : there).priority);
    }
}

TEST(Registry, MakeKernelDerivesNameAndId) {
    const KernelConfig config = sample_kernels().front().config;
    const Kernel kernel = make_kernel(config, Priority::high, true);
    EXPECT_EQ(kernel.name, kernel_name(config));
    EXPECT_EQ(kernel.id, kernel_id(kernel.name));
    EXPECT_EQ(kernel.config, config);
    EXPECT_EQ(kernel.priority, Priority::high);
    EXPECT_TRUE(kernel.available);
    EXPECT_FALSE(make_kernel(config).available) << "until there is code for it";
}

TEST(Registry, FindsByNameAndById) {
    Registry registry("mine");
    EXPECT_EQ(registry.name(), "mine");
    const auto kernels = sample_kernels();
    EXPECT_EQ(registry.add(kernels), kernels.size());
    EXPECT_EQ(registry.size(), kernels.size());
    for (const Kernel& kernel : kernels) {
        ASSERT_NE(registry.find(kernel.name), nullptr);
        EXPECT_EQ(registry.find(kernel.name)->config, kernel.config);
        EXPECT_EQ(registry.find(kernel.id), registry.find(kernel.name));
    }
    EXPECT_EQ(registry.find("none"), nullptr);
    EXPECT_EQ(registry.find(""), nullptr);
    EXPECT_EQ(registry.find(kernels.front().id.substr(0, 8)), nullptr) << "part of an id is no id";
}

// The same rule for one kernel, for a list and for a merge: strictly higher replaces, and the same with code where there
// was none; all else stays.
TEST(Registry, OnlyAHigherPriorityReplaces) {
    const KernelConfig config = sample_kernels().front().config;
    constexpr Priority kAll[] = {Priority::low, Priority::normal, Priority::high};
    for (const Priority there : kAll) {
        for (const Priority comes : kAll) {
            for (const bool had_code : {false, true}) {
                for (const bool has_code : {false, true}) {
                    expect_rule(make_kernel(config, there, had_code), make_kernel(config, comes, has_code));
                }
            }
        }
    }
}

TEST(Registry, TheRuleHoldsWithinOneList) {
    const KernelConfig config = sample_kernels().front().config;
    Registry registry;
    EXPECT_EQ(registry.add({make_kernel(config, Priority::low), make_kernel(config, Priority::high, true),
                            make_kernel(config, Priority::normal)}),
              2u);
    ASSERT_EQ(registry.size(), 1u);
    EXPECT_EQ(registry.kernels()->front()->priority, Priority::high);
    EXPECT_TRUE(registry.kernels()->front()->available);
}

TEST(Registry, OrderDoesNotDependOnWhoCameWhen) {
    Random random(1);
    auto kernels = sample_kernels();
    for (Kernel& kernel : kernels) kernel.priority = static_cast<Priority>(random.between(0, 2));
    Registry first;
    first.add(kernels);
    for (int round = 0; round < 5; ++round) {
        shuffle(kernels, random);
        Registry all, single, half, merged;
        all.add(kernels);
        for (const Kernel& kernel : kernels) single.add(kernel);
        half.add({kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(kernels.size() / 2)});
        merged.add({kernels.begin() + static_cast<std::ptrdiff_t>(kernels.size() / 3), kernels.end()});
        merged.merge(half);
        merged.merge(all);
        EXPECT_EQ(names_in(all), names_in(first));
        EXPECT_EQ(names_in(single), names_in(first));
        EXPECT_EQ(names_in(merged), names_in(first));
    }
    const auto list = first.kernels();
    for (std::size_t i = 1; i < list->size(); ++i) {
        const Kernel &before = *(*list)[i - 1], &after = *(*list)[i];
        EXPECT_TRUE(before.priority > after.priority ||
                    (before.priority == after.priority && before.name < after.name));
    }
}

TEST(Registry, RegistriesAreIndependent) {
    Registry a("a"), b("b");
    a.add(sample_kernels());
    EXPECT_EQ(b.size(), 0u);
    b.merge(a);
    a.clear();
    EXPECT_EQ(a.size(), 0u);
    EXPECT_EQ(b.size(), sample_kernels().size());
}

TEST(Registry, MergeWithItselfChangesNothing) {
    Registry registry;
    registry.add(sample_kernels());
    const auto before = names_in(registry);
    EXPECT_EQ(registry.merge(registry), 0u);
    EXPECT_EQ(names_in(registry), before);
}

TEST(Registry, ASnapshotOutlivesEverything) {
    auto registry = std::make_unique<Registry>();
    registry->add(sample_kernels());
    const auto snapshot = registry->kernels();
    const KernelPtr one = registry->find(snapshot->front()->name);
    const std::size_t count = snapshot->size();
    registry->clear();
    EXPECT_EQ(registry->find(one->name), nullptr);
    registry.reset();
    EXPECT_EQ(snapshot->size(), count);
    std::set<std::string> names;
    for (const KernelPtr& kernel : *snapshot) names.insert(kernel->name);
    EXPECT_EQ(names.size(), count);
    EXPECT_EQ(kernel_name(one->config), one->name);
}

TEST(Registry, FilterKeepsOrderAndKinds) {
    Registry registry;
    registry.add(sample_kernels());
    const auto is_gemm = [](const Kernel& kernel) { return kernel.config.op == Op::gemm; };
    const KernelList gemms = registry.filter(is_gemm);
    EXPECT_GT(gemms.size(), 0u);
    EXPECT_LT(gemms.size(), registry.size());
    std::size_t at = 0;
    const auto snapshot = registry.kernels();
    for (const KernelPtr& kernel : *snapshot) {
        if (!is_gemm(*kernel)) continue;
        EXPECT_EQ(gemms.at(at++), kernel);
    }
    EXPECT_EQ(at, gemms.size());
}

// User code runs outside the lock: a filter may use, and even change, the registry it filters.
TEST(Registry, AFilterMayCallTheRegistry) {
    Registry registry;
    const auto kernels = sample_kernels();
    registry.add(kernels);
    std::size_t calls = 0;
    const KernelList kept = registry.filter([&](const Kernel& kernel) {
        ++calls;
        EXPECT_NE(registry.kernels(), nullptr);
        if (calls == 1) registry.clear();
        if (calls == 2) registry.add(kernel);
        return registry.find(kernel.name) == nullptr;
    });
    EXPECT_EQ(calls, kernels.size()) << "the filter sees the kernels as they were when it began";
    EXPECT_EQ(kept.size(), kernels.size() - 1);
    EXPECT_EQ(registry.size(), 1u);
}

}  // namespace
}  // namespace tilewise
