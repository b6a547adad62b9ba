// SPDX-License-Identifier: MIT
#include "registry/rule_set_registry.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/files.hpp"
#include "base/text.hpp"
#include "config/config_name.hpp"
#include "registry/sample_kernels.hpp"

namespace tilewise {
namespace {

TEST(RuleSetRegistry, AQueryNarrowsWhatIsListed) {
    KernelQuery query;
    query.arch = &arch_named("gfx942");
    query.set = RuleSet::tiny;
    const auto all = list_kernels(query);
    ASSERT_TRUE(all.ok());
    std::size_t by_op = 0, by_pair = 0;
    for (const Op op : kAllOps) {
        query.op = op;
        query.dtypes.reset();
        const auto of_op = list_kernels(query);
        for (const Kernel& kernel : *of_op) EXPECT_EQ(kernel.config.op, op);
        by_op += of_op->size();
        for (const DTypePair& pair : pairs_of(*query.arch)) {
            query.dtypes = pair;
            const auto of_pair = list_kernels(query);
            for (const Kernel& kernel : *of_pair) {
                EXPECT_EQ(kernel.config.dtype, pair.a);
                EXPECT_EQ(kernel.config.dtype_b, pair.b);
            }
            by_pair += of_pair->size();
        }
    }
    EXPECT_EQ(by_op, all->size());
    EXPECT_EQ(by_pair, all->size());
    query.dtypes = DTypePair{DType::fp32, DType::fp8};
    EXPECT_TRUE(list_kernels(query)->empty());
}

using Kind = std::tuple<Op, DType, DType, Layout, Pipeline>;

std::set<Kind> kinds_of(const std::vector<Kernel>& kernels) {
    std::set<Kind> kinds;
    for (const Kernel& kernel : kernels) {
        const KernelConfig& c = kernel.config;
        if (kernel.available) kinds.insert({c.op, c.dtype, c.dtype_b, c.layout, c.pipeline});
    }
    return kinds;
}

// Selection never meets a kernel without code, and on AMD GPUs it has one of every kind that has code at all.
TEST(RuleSetRegistry, DefaultHasCodeThroughout) {
    for (const ArchSpec& arch : embedded_archs().archs()) {
        SCOPED_TRACE(arch.name);
        KernelQuery query;
        query.arch = &arch;
        const auto kernels = list_kernels(query);
        ASSERT_TRUE(kernels.ok());
        for (const Kernel& kernel : *kernels) ASSERT_TRUE(kernel.available) << kernel_name(kernel.config);
        if (arch.backend != Backend::hip) continue;
        query.set = RuleSet::full;
        EXPECT_EQ(kinds_of(*kernels), kinds_of(*list_kernels(query)));
    }
}

std::string digests(std::string_view text) {
    std::string lines;
    for (const std::string_view line : split(text, '\n')) {
        if (!line.starts_with('#') && !line.empty()) lines += std::string(line) + "\n";
    }
    return lines;
}

// A line for each set of each type of each operation of each arch: arch op dtype set count digest.
void expect_complete(std::string_view lines) {
    std::size_t expected = 0, count = 0;
    for (const ArchSpec& arch : embedded_archs().archs()) {
        expected += kAllOps.size() * pairs_of(arch).size() * kAllRuleSets.size();
    }
    for (const std::string_view line : split(lines, '\n')) {
        if (line.empty()) continue;
        ++count;
        const auto words = split(line, ' ');
        ASSERT_EQ(words.size(), 6u) << line;
        EXPECT_TRUE(parse_integer(words[4]).has_value()) << line;
        EXPECT_EQ(words[5].size(), 16u) << line;
    }
    EXPECT_EQ(count, expected);
}

// A change of what the rule sets expand to changes every model and every pack: it is a decision, seen in review.
TEST(RuleSetManifest, IsCompleteAndTheOneCheckedIn) {
    const auto manifest = rule_set_manifest(embedded_archs());
    ASSERT_TRUE(manifest.ok()) << manifest.error().message;
    const std::string here = digests(*manifest);
    expect_complete(here);

    const std::string path = TILEWISE_SOURCE_DIR "/tests/golden/rule_sets.txt";
    const auto golden = read_file(path);
    ASSERT_TRUE(golden.ok()) << golden.error().message << "\nRun `make manifest` to write it.";
    if (*golden == *manifest) return;
    const std::string there = digests(*golden);
    const auto old_lines = split(there, '\n');
    std::string changes;
    int shown = 0;
    for (const std::string_view line : split(here, '\n')) {
        if (std::find(old_lines.begin(), old_lines.end(), line) != old_lines.end()) continue;
        if (++shown <= 10) changes += "  now " + std::string(line) + "\n";
    }
    ADD_FAILURE() << "The rule sets expand to something else than " << path << " says; " << shown << " lines are new:\n"
                  << changes << "If that is what you want, run `make manifest` and commit the file.";
}

}  // namespace
}  // namespace tilewise
