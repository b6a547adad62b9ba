// SPDX-License-Identifier: MIT
// Whatever kernel fits a problem can be launched: its blocks, threads and shared memory are within what the arch has.
// Without a GPU, for every kernel of the default set and layers of all sizes.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/random.hpp"
#include "config/archs.hpp"
#include "config/family_id.hpp"
#include "family/cuda/first_layer_plan.hpp"
#include "family/cuda/patch_tile.hpp"
#include "family/family.hpp"
#include "family/launch_plan.hpp"
#include "family/may_run.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kReservedBytes = 1024;  // of every block, by the system

template <std::size_t count>
std::int64_t one_of(Random& random, const std::array<std::int64_t, count>& values) {
    return values[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(count) - 1))];
}

Problem random_layer(Random& random, Op op) {
    Problem p;
    p.op = op, p.dtype_a = p.dtype_b = p.dtype_out = DType::bf16, p.layout = Layout::nhwgc;
    ConvShape& s = p.conv;
    s.in = s.filter = s.stride = s.dilation = s.pad_before = s.pad_after = filled(2, 1);
    s.n = one_of<4>(random, {1, 8, 32, 64});
    s.g = one_of<5>(random, {1, 4, 8, 32, 768});
    s.c = s.g * (random.chance(20) ? 3 : one_of<9>(random, {1, 4, 8, 16, 24, 32, 40, 64, 104}));
    s.k = random.chance(70) ? s.c : s.g * one_of<5>(random, {1, 8, 32, 64, 128});
    const std::int64_t side = one_of<7>(random, {7, 14, 28, 48, 56, 224, 320});
    const std::int64_t filter = one_of<4>(random, {1, 3, 5, 7}), stride = random.chance(70) ? 1 : 2;
    const std::int64_t dilation = random.chance(80) ? 1 : random.between(2, 4);
    s.in = filled(2, side), s.filter = filled(2, filter), s.stride = filled(2, stride);
    s.dilation = filled(2, dilation), s.pad_before = s.pad_after = filled(2, filter / 2 * dilation);
    if (random.chance(30)) s.in[1] = 2 * side, s.filter[0] = 1, s.pad_before[0] = s.pad_after[0] = 0;
    return p;
}

Problem random_product(Random& random) {
    Problem p;
    p.op = Op::gemm, p.dtype_a = p.dtype_b = p.dtype_out = DType::bf16;
    const auto text = "gemm:m=" + std::to_string(one_of<5>(random, {1, 17, 512, 4096, 100000})) +
                      ",n=" + std::to_string(one_of<4>(random, {8, 200, 4096, 50304})) +
                      ",k=" + std::to_string(one_of<4>(random, {8, 72, 4096, 65536})) +
                      ",dtype=bf16,layout=rcr,batch=" + std::to_string(random.chance(70) ? 1 : 48);
    return parse_problem(text).value();
}

void expect_launchable(const GpuGrid& grid, const KernelConfig& c, const ArchSpec& arch) {
    EXPECT_GE(grid.blocks, 1);
    EXPECT_LE(grid.blocks, std::numeric_limits<int>::max());
    EXPECT_GE(grid.block.threads, 1);
    EXPECT_LE(grid.block.threads, arch.max_threads);
    EXPECT_GE(grid.block.shared_bytes, 0);
    EXPECT_LE(grid.block.shared_bytes, arch.shared_bytes);
    if (is_patch_conv(family_of(c)) ||
        family_of(c) ==
            FamilyId::first_layer_conv) {  // their tiles are as large as the place that the blocks of a unit leave
        EXPECT_LE((grid.block.shared_bytes + kReservedBytes) * c.blocks_per_unit, arch.shared_bytes + kReservedBytes);
    }
    EXPECT_LE(grid.block.cluster.m * grid.block.cluster.n, arch.max_cluster);
    EXPECT_LE(grid.reduce_threads, arch.max_threads);
    EXPECT_LE(grid.pack_threads, arch.max_threads);
}

class LaunchLimits : public testing::TestWithParam<Op> {
protected:
    // Every kernel of the default set with the problems that fit it; returns how many launches that were.
    int check(const ArchSpec& arch, int problems) {
        KernelQuery query;
        query.arch = &arch, query.op = GetParam(), query.dtypes = parse_pair("bf16").value();
        const auto kernels = list_kernels(query);
        EXPECT_TRUE(kernels.ok());
        int launches = 0;
        for (int i = 0; i < problems; ++i) {
            const Problem p = GetParam() == Op::gemm ? random_product(random) : random_layer(random, GetParam());
            if (check_problem(p)) continue;
            const ProblemView view(p);
            for (const Kernel& kernel : *kernels) {
                if (!kernel.available || !may_run(view, kernel.config, arch)) continue;
                SCOPED_TRACE(kernel.name + "\n" + print_problem(p));
                expect_launchable(*launch_plan(p, kernel.config, arch, 1)->gpu(), kernel.config, arch);
                ++launches;
            }
        }
        return launches;
    }

    Random random{2026};
};
INSTANTIATE_TEST_SUITE_P(Operations, LaunchLimits,
                         testing::Values(Op::gemm, Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(LaunchLimits, WhateverFitsCanBeLaunched) {
    for (const char* name : {"sm_90a", "sm_80"}) {
        constexpr int kProblems = 200, kLeast = 1000;
        EXPECT_GT(check(arch_named(name), kProblems), kLeast) << name;
    }
}

}  // namespace
}  // namespace tilewise
