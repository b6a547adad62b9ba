// SPDX-License-Identifier: MIT
// Halo kernels are expected to take so long: never less than memory allows, more for more work, and more where slices that share
// lines of memory come to them one long after the other.
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "family/cuda/patch_tile.hpp"
#include "family/cuda/patch_traffic.hpp"
#include "family/family.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

KernelConfig halo_config(Op op, Shape3 tile, Shape3 wave, int merge) {
    KernelConfig c;
    c.op = op, c.dtype = c.dtype_b = c.dtype_out = DType::bf16, c.gather = Gather::halo;
    c.tile = tile, c.wave = wave, c.warp_tile = {16, 8, 16}, c.stages = 2, c.num_groups_to_merge = merge;
    c.blocks_per_unit = 2, c.vector_a = c.vector_b = c.vector_c = 8;
    return c;
}

Problem layer(const std::string& op, int images, int groups, int channels, int pixels) {
    const std::string c = std::to_string(groups * channels), in = std::to_string(pixels);
    return *parse_problem(op + ":n=" + std::to_string(images) + ",g=" + std::to_string(groups) + ",c=" + c + ",k=" + c +
                          ",in=" + in + "x" + in + ",filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc");
}

double us_of(const Problem& p, const KernelConfig& c) {
    return predicted_us(WorkProblem(p, arch_named("sm_90a"), 1), c);
}

double traffic_of(const Problem& p, const KernelConfig& c) {
    const ArchSpec& arch = arch_named("sm_90a");
    return patch_traffic_bytes(p, c, *patch_conv_plan(p, c, arch), arch);
}

TEST(PatchConvWork, IsBoundedByMemoryAndGrowsWithTheWork) {
    const ArchSpec& arch = arch_named("sm_90a");
    int tested = 0;  // not all fit shared memory
    for (const Op op : {Op::conv_fwd, Op::conv_bwd_data}) {
        const std::string name = op == Op::conv_fwd ? "conv_fwd" : "conv_bwd_data";
        for (const int channels : {8, 16, 32}) {
            for (const int merge : {1, 4, 8}) {
                const KernelConfig c = halo_config(op, {256, 32, 16}, {4, 1, 1}, merge);
                double last = 0;
                for (const int images : {1, 8, 64, 256}) {
                    const Problem p = layer(name, images, 32, channels, 28);
                    if (!patch_conv_plan(p, c, arch)) continue;
                    const double us = us_of(p, c);
                    EXPECT_GT(us, bytes_moved(p) / (arch.memory_gbps * 1e3)) << print_problem(p);
                    EXPECT_GE(us, 0.9 * last) << print_problem(p);  // other tiles may suit it better
                    last = us, ++tested;
                }
            }
        }
    }
    EXPECT_GT(tested, 50);
}

TEST(PatchConvWork, CountsLinesThatSlicesShareOnceWhereTheCacheHoldsThem) {
    const KernelConfig c = halo_config(Op::conv_fwd, {256, 24, 16}, {4, 1, 1}, 1);
    // Pieces of 16 bytes of lines of 128, of more slices than there are places for blocks: these follow each other.
    const Problem small = layer("conv_fwd", 1, 512, 8, 14), large = layer("conv_fwd", 64, 512, 8, 28);
    EXPECT_EQ(traffic_of(small, c), bytes_moved(small));
    EXPECT_GT(traffic_of(large, c), 1.2 * bytes_moved(large));
}

TEST(PatchConvWork, CountsLinesOnceWhereSlicesComeSideBySide) {
    const KernelConfig c = halo_config(Op::conv_fwd, {256, 24, 16}, {4, 1, 1}, 1);
    const Problem large = layer("conv_fwd", 64, 32, 8, 56);
    EXPECT_GT(patch_conv_plan(large, c, arch_named("sm_90a"))->interleaved, 1);
    EXPECT_EQ(traffic_of(large, c), bytes_moved(large));
}

TEST(PatchConvWork, TakesWholeLinesOnce) {
    const KernelConfig wide = halo_config(Op::conv_fwd, {256, 32, 16}, {4, 1, 1}, 8);
    const Problem large = layer("conv_fwd", 64, 32, 8, 56);  // 8 groups of 8 channels are a line
    const double weights = 2.0 * static_cast<double>(large.conv.k) * 8 * 9;
    EXPECT_NEAR(traffic_of(large, wide), bytes_moved(large), weights);
}

TEST(PatchConvWork, WaitsForWeightsThatComeOneByOne) {
    KernelConfig chunks = halo_config(Op::conv_fwd, {256, 32, 16}, {4, 1, 1}, 4), single = chunks;
    single.vector_b = 1;
    const Problem p = layer("conv_fwd", 32, 8, 16, 28);
    EXPECT_GT(us_of(p, single), us_of(p, chunks));
}

}  // namespace
}  // namespace tilewise
