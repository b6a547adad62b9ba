// SPDX-License-Identifier: MIT
// The work of convolutions on CPUs: it must forget no work and count the pairs of pixels and taps as they are. How well it
// ranks is measured by sweeps (docs/sweep.md), not here.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>

#include "base/sanitized.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "family/family.hpp"
#include "problem/random_problem.hpp"
#include "registry/sample_kernels.hpp"

namespace tilewise {
namespace {

// Kernels of the default set that may run the problem.
KernelList candidates_of(const Problem& problem, const std::string& arch) {
    static std::map<std::string, Registry> registries;
    const auto [found, is_new] = registries.try_emplace(arch);
    if (is_new) found->second.add(sample_kernels(arch, RuleSet::standard));
    return found->second.candidates(problem, arch_named(arch)).accepted;
}

Problem parsed(const std::string& text) {
    auto problem = parse_problem(text);
    EXPECT_TRUE(problem.ok()) << text << ": " << problem.error().message;
    return *problem;
}

const std::vector<std::string>& some_problems() {
    static const std::vector<std::string> problems = {
        "n=1,g=1,c=64,k=64,in=56x56,filter=3x3,stride=1x1,pad=1x1,dtype=fp32,layout=nhwgc",
        "n=2,g=1,c=3,k=64,in=33x35,filter=7x7,stride=2x2,pad=3x3,dtype=bf16,layout=nhwgc",
        "n=1,g=32,c=32,k=32,in=28x28,filter=3x3,stride=2x2,pad=1x1,dtype=fp32,layout=nhwgc",
        "n=1,g=32,c=128,k=128,in=28x28,filter=3x3,stride=1x1,pad=1x1,dtype=bf16,layout=nhwgc",
        "n=1,g=1,c=20,k=10,in=9x17x13,filter=3x1x2,stride=2x1x3,pad=1x0x1,dtype=fp32,layout=ndhwgc",
        "n=3,g=5,c=35,k=50,in=100,filter=4,stride=3,pad=2,dilation=2,dtype=fp32,layout=ngcw",
        "n=1,g=1,c=256,k=128,in=20x20,filter=1x1,dtype=fp32,layout=nhwgc",
    };
    return problems;
}

TEST(CpuConvWork, ForgetsNoMultiplication) {
    int direct = 0, implicit = 0;
    for (const std::string arch_name : {"cpu-avx512", "cpu-avx2", "cpu-generic"}) {
        const ArchSpec& arch = arch_named(arch_name);
        for (const std::string op : {"conv_fwd:", "conv_bwd_weight:"}) {
            for (const std::string& text : some_problems()) {
                const Problem problem = parsed(op + text);
                const ProblemView view(problem);
                const ConvCounts counts(view, arch);
                for (const KernelPtr& kernel : candidates_of(problem, arch_name)) {
                    const KernelConfig& c = kernel->config;
                    const double products = family_of(c) == FamilyId::direct_conv
                                                ? counts.direct_work(c).products
                                                : counts.implicit_work(c).product.products;
                    const double flops_each = static_cast<double>(2 * vector_lanes(arch) * c.warp_tile.k);
                    ++(family_of(c) == FamilyId::direct_conv ? direct : implicit);
                    EXPECT_GE(products * flops_each, flops(problem) * (1 - 1e-9)) << text << " " << kernel->name;
                }
            }
        }
    }
    EXPECT_GT(implicit, 100);
    EXPECT_GT(direct, 10);
}

// Input pixels and taps that lead to an output or into the padding beyond it, by walking over all of them.
double pairs_of(const ConvShape& s) {
    double pairs = static_cast<double>(s.n);
    for (int d = 0; d < s.in.rank; ++d) {
        std::int64_t along = 0;
        for (std::int64_t i = 0; i < s.in[d]; ++i) {
            for (std::int64_t t = 0; t < s.filter[d]; ++t) {
                along += (i + s.pad_before[d] - t * s.dilation[d]) % s.stride[d] == 0 ? 1 : 0;
            }
        }
        pairs *= static_cast<double>(along);
    }
    return pairs;
}

TEST(CpuConvWork, BackwardDataCountsThePairsOfPixelsAndTaps) {
    const ArchSpec& arch = arch_named("cpu-avx512");
    Random random(7);
    for (int i = 0; i < 200; ++i) {
        Problem problem;
        problem.op = Op::conv_bwd_data;
        ConvShape& s = problem.conv;
        const int rank = static_cast<int>(random.between(1, 3));
        s.n = random.between(1, 3), s.g = 1, s.c = s.k = 16;
        for (Extents* extents : {&s.in, &s.filter, &s.stride, &s.dilation, &s.pad_before, &s.pad_after}) {
            *extents = filled(rank, 1);
        }
        for (int d = 0; d < rank; ++d) {
            s.stride[d] = random.between(1, 4);
            s.in[d] = s.stride[d] * random.between(2, 5);  // then the classes have equally many pixels
            s.filter[d] = random.between(1, 5), s.dilation[d] = random.between(1, 3);
            s.pad_before[d] = s.pad_after[d] = random.between(0, 2);
        }
        problem.layout = channels_last(rank);
        if (check_problem(problem)) continue;
        KernelConfig c;
        c.op = problem.op, c.ndim = rank, c.pipeline = Pipeline::basic_v1;
        c.tile = {48, 128, 128}, c.warp_tile = {6, 64, 1};
        const ProblemView view(problem);
        EXPECT_NEAR(ConvCounts(view, arch).implicit_work(c).pointers, pairs_of(s), 1e-6 * pairs_of(s))
            << print_problem(problem);
    }
}

TEST(CpuConvWork, MoreImagesTakeLonger) {
    const ArchSpec& arch = arch_named("cpu-avx512");
    for (const std::string op : {"conv_fwd:", "conv_bwd_data:", "conv_bwd_weight:"}) {
        for (const std::string& text : some_problems()) {
            Problem problem = parsed(op + text);
            Problem larger = problem;
            larger.conv.n *= 3;
            const WorkProblem own(problem, arch, 1), more(larger, arch, 1);
            for (const KernelPtr& kernel : candidates_of(problem, "cpu-avx512")) {
                const double us = predicted_us(own, kernel->config);
                EXPECT_TRUE(std::isfinite(us) && us > 0) << kernel->name;
                EXPECT_GT(predicted_us(more, kernel->config), us) << kernel->name;
            }
        }
    }
}

TEST(CpuConvWork, IsPositiveForWhateverIsAsked) {
    const ArchSpec& arch = arch_named("cpu-avx512");
    Random random(3);
    int predictions = 0;
    for (int i = 0; i < 100; ++i) {
        const Problem problem = random_problem(random);
        if (!is_conv(problem.op)) continue;
        const WorkProblem own(problem, arch, static_cast<int>(random.between(1, 8)));
        for (const KernelPtr& kernel : candidates_of(problem, "cpu-avx512")) {
            const double us = predicted_us(own, kernel->config);
            EXPECT_TRUE(std::isfinite(us) && us > 0) << print_problem(problem) << " " << kernel->name;
            ++predictions;
        }
    }
    EXPECT_GT(predictions, 30);
}

// A cold choice among hundreds of kernels is to take microseconds. The best of many rounds, so that a busy machine does not
// matter; the limit is far above what is expected (0.15 us), for builds with sanitizers there is none.
TEST(CpuConvWork, IsCheap) {
    const ArchSpec& arch = arch_named("cpu-avx512");
    for (const std::string& text : some_problems()) {
        const Problem problem = parsed("conv_bwd_data:" + text);
        const KernelList kernels = candidates_of(problem, "cpu-avx512");
        ASSERT_FALSE(kernels.empty());
        double best_ns = 1e9, sum = 0;
        for (int round = 0; round < 50; ++round) {
            const auto start = std::chrono::steady_clock::now();
            const WorkProblem own(problem, arch, 1);
            for (const KernelPtr& kernel : kernels) sum += predicted_us(own, kernel->config);
            const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
            best_ns = std::min(best_ns, took.count() / static_cast<double>(kernels.size()));
        }
        EXPECT_GT(sum, 0);
        constexpr double kMostNs = 2000;
        if (!is_sanitized()) {
            EXPECT_LT(best_ns, kMostNs) << text;
        }
    }
}

}  // namespace
}  // namespace tilewise
