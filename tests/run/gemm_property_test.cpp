// SPDX-License-Identifier: MIT
// Random problems on random kernels of the host's arch, built by the host's compiler, against the reference: every type,
// layout, option and odd size meets every pipeline and micro-kernel over time. TILEWISE_TEST_CONFIGS says how many kernels,
// TILEWISE_TEST_PROBLEMS how many problems are tried on each (`make test-full` asks for more), TILEWISE_TEST_ARCH another
// CPU arch that the host is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/sanitized.hpp"
#include "config/rule_set.hpp"
#include "family/may_run.hpp"
#include "problem/random_problem.hpp"
#include "run/property_testing.hpp"

namespace tilewise {
namespace {

using property_testing::number;

// A kernel takes about half a second of compiling, a problem one or two milliseconds. A sanitizer makes the reference several
// times slower.
constexpr int kKernels = 6;
const int kProblemsEach = is_sanitized() ? 30 : 100;

// Small enough for the reference, also under a sanitizer; larger than any micro-kernel and, at times, than a tile.
constexpr double kMostFlops = 8e5;

// Turns the problem into a thin one with more k than the kernel's k tile, and enough for each part of a split k.
void deepen(Random& random, Problem& p, const KernelConfig& config) {
    const std::int64_t step = config.tile.k, least_steps = std::max(config.split_k, 2);
    GemmShape& s = p.gemm;
    s = GemmShape{};
    s.k = random.between((least_steps - 1) * step + 1, (least_steps + 1) * step);
    constexpr std::int64_t kLargest = 70;
    const auto area = std::max<std::int64_t>(1, static_cast<std::int64_t>(kMostFlops / 2) / s.k);
    s.m = random.between(1, std::min(kLargest, area));
    s.n = random.between(1, std::min(kLargest, area / s.m));
    if (random.chance(50)) std::swap(s.m, s.n);
    for (int i = 0; i < 3; ++i) {
        if (random.chance(30)) s.leading[static_cast<std::size_t>(i)] = contiguous_length(p, i) + random.between(1, 64);
    }
}

// A problem for the kernel: its types, a layout of its own, small odd sizes, any options that it takes.
Problem problem_for(Random& random, const KernelConfig& config) {
    Problem types;
    types.dtype_a = config.dtype;
    types.dtype_b = config.dtype_b;
    types.dtype_out = config.dtype_out;
    Problem p;
    do {
        p = types;
        randomize_gemm(random, p, random.chance(70) ? 70 : 300);
    } while (flops(p) > kMostFlops);
    if (config.split_k > 1 || random.chance(20)) deepen(random, p, config);
    randomize_options(random, p);
    p.packed_b = config.pipeline == Pipeline::preshuffle;
    p.math = Math::strict;
    p.align_bytes = kDefaultAlignBytes;
    p.workspace_bytes = kNoWorkspaceLimit;
    return p;
}

// `count` kernels that the device can run; the pairs of types take turns, beginning with the `first`.
std::vector<Kernel> random_kernels(Random& random, const Device& device, int first, int count) {
    std::vector<Kernel> kernels;
    const auto pairs = pairs_of(device.arch());
    for (int i = 0; i < count; ++i) {
        std::optional<DType> out;
        if (random.chance(30)) out = random.pick(std::array{DType::fp32, DType::bf16, DType::fp16});
        const DTypePair pair = pairs[static_cast<std::size_t>(first + i) % pairs.size()];
        const auto configs = expand(device.arch(), Op::gemm, pair, RuleSet::full, out);
        EXPECT_TRUE(configs.ok() && !configs->empty());
        if (!configs || configs->empty()) continue;
        Kernel kernel = make_kernel(random.pick(*configs));
        if (!device.refuses(kernel.config)) kernels.push_back(std::move(kernel));
    }
    return kernels;
}

// In parts, so that they can run side by side.
constexpr int kParts = 5;
// Parts begin this far apart in the pairs of types, however many kernels each has: fewer kernels are some of the same ones.
constexpr int kPartStep = 10;
class GemmProperty : public property_testing::PropertyTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Part, GemmProperty, testing::Range(0, kParts));

TEST_P(GemmProperty, RandomProblemsOnRandomKernelsMatchTheReference) {
    Random random(2026 + static_cast<std::uint64_t>(GetParam()));
    const int count = (number("TILEWISE_TEST_CONFIGS", kKernels) + kParts - 1) / kParts;
    const std::vector<Kernel> kernels = random_kernels(random, *device_, GetParam() * kPartStep, count);
    build_ahead(kernels);
    const int problems = number("TILEWISE_TEST_PROBLEMS", kProblemsEach);
    std::size_t runs = 0;
    for (const Kernel& kernel : kernels) {
        const std::size_t before = runs;
        for (int i = 0; i < problems; ++i) {
            const Problem problem = problem_for(random, kernel.config);
            if (check_problem(problem) || !may_run(ProblemView(problem), kernel.config, *arch_)) continue;
            ++runs;
            if (!run_and_check(random, problem, kernel)) break;
        }
        EXPECT_GT(runs, before) << kernel.name << " took none of the problems";
    }
    std::printf("%zu runs of %zu kernels\n", runs, kernels.size());
    EXPECT_GT(kernels.size(), 0u);
}

}  // namespace
}  // namespace tilewise
