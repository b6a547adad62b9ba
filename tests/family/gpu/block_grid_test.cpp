// SPDX-License-Identifier: MIT
// How GPU launches are cut into blocks and described to the copy engine, without a GPU.
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/fit.hpp"
#include "family/family.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

GpuGrid grid_of(const std::string& problem, const std::string& kernel) {
    const KernelConfig config = parse_kernel_name(kernel).value();
    const ArchSpec& arch = **embedded_archs().find(config.arch);
    return *find_family(config, arch)->plan(parse_problem(problem).value(), config, arch, 1, nullptr)->gpu();
}

const std::string kPersistent =
    "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_pw1@sm_90a";
const std::string kCluster =
    "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_cluster2x1_pw1@sm_90a";
const std::string kSwapped =
    "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x16x64_1x1x1_64x16x16_va8_vb8_vc8_stages8_splitk4_swap_pw1@sm_90a";
const std::string kGeneral = "gemm_bf16_rrc_compv3_default_intrawave_64x64x32_2x2x1_16x8x16@sm_90a";

TEST(BlockGrid, PersistentBlocksFillTheUnitsButNotMore) {
    EXPECT_EQ(grid_of("gemm:m=4096,n=4096,k=4096,dtype=bf16,layout=rcr", kPersistent).blocks, 132);
    EXPECT_EQ(grid_of("gemm:m=300,n=500,k=64,dtype=bf16,layout=rcr", kPersistent).blocks, 3 * 2);
    EXPECT_EQ(grid_of("gemm:m=300,n=500,k=64,dtype=bf16,layout=rcr", kCluster).blocks, 4 * 2) << "whole clusters";
    EXPECT_EQ(grid_of("gemm:m=300,n=500,k=64,dtype=bf16,layout=rcr,batch=5", kGeneral).blocks, 5 * 8 * 5);
}

TEST(BlockGrid, BlocksThatShareTilesFillTheUnits) {
    const std::string stream = std::string(kPersistent).replace(kPersistent.find("_pers"), 5, "_pers_sk-tree");
    EXPECT_EQ(grid_of("gemm:m=4096,n=4096,k=4096,dtype=bf16,layout=rcr", stream).blocks, 132);
    EXPECT_EQ(grid_of("gemm:m=512,n=1024,k=8192,dtype=bf16,layout=rcr", stream).blocks, 128) << "16 tiles, 8 each";
    EXPECT_EQ(grid_of("gemm:m=300,n=500,k=64,dtype=bf16,layout=rcr", stream).blocks, 6) << "a step a tile";
    EXPECT_EQ(grid_of("gemm:m=300,n=500,k=1024,dtype=bf16,layout=rcr", stream).blocks, 12) << "eight steps a block";
}

TEST(BlockGrid, SwappedTilesRunAlongN) {
    const GpuGrid grid = grid_of("gemm:m=16,n=4096,k=4096,dtype=bf16,layout=rcr", kSwapped);
    EXPECT_EQ(grid.blocks, 64 * 4) << "64 tiles, four parts of k each";
    EXPECT_GT(grid.reduce_blocks, 0);
    EXPECT_EQ((*grid.tensor_maps)[0].box, (TensorBox{16, 64})) << "A is the operand of the columns";
    EXPECT_EQ((*grid.tensor_maps)[1].box, (TensorBox{64, 64}));
    EXPECT_EQ((*grid.tensor_maps)[2].box, TensorBox{}) << "results leave element by element";
}

TEST(BlockGrid, BoxesEndWithAMatrixOfFewLines) {
    const GpuGrid swapped = grid_of("gemm:m=3,n=40,k=4096,dtype=bf16,layout=rcr", kSwapped);
    EXPECT_EQ((*swapped.tensor_maps)[0].box, (TensorBox{3, 64}));
    EXPECT_EQ((*swapped.tensor_maps)[1].box, (TensorBox{40, 64}));
    const GpuGrid plain = grid_of("gemm:m=5,n=4096,k=64,dtype=bf16,layout=rcr", kPersistent);
    EXPECT_EQ((*plain.tensor_maps)[0].box.rows, 5);
    EXPECT_EQ((*plain.tensor_maps)[1].box.rows, 256);
    EXPECT_EQ(grid_of("gemm:m=5,n=4096,k=64,dtype=bf16,layout=rcr", kCluster).tensor_maps->at(0).box.rows, 128)
        << "blocks that share a tile each copy their part of it";
}

TEST(BlockGrid, WavesThatShareOutKAreThreadsOfOneBlock) {
    const GpuGrid grid =
        grid_of("gemm:m=5,n=6144,k=4096,dtype=fp32,layout=rcr",
                "gemm_fp32_rcr_comp_async_cshuffle_intrawave_16x48x128_1x1x8_16x16x1_va4_vb4_vc4_dsb_stages4@sm_90a");
    EXPECT_EQ(grid.blocks, 128);
    EXPECT_EQ(grid.block.threads, 256);
    EXPECT_EQ(grid.reduce_blocks, 0) << "nothing is left to add up";
}

TEST(BlockGrid, PartsOfKAreBlocksOfACluster) {
    const GpuGrid grid = grid_of(
        "gemm:m=16,n=4096,k=4096,dtype=bf16,layout=rcr",
        "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x16x64_1x1x1_64x16x16_va8_vb8_vc8_stages8_splitk4_clusterk_swap_"
        "pw1@sm_90a");
    EXPECT_EQ(grid.blocks, 64 * 4);
    EXPECT_EQ(grid.block.cluster, (Shape2{4, 1}));
    EXPECT_EQ(grid.reduce_blocks, 0) << "nothing is left to add up";
}

TEST(BlockGrid, TensorMapsSayHowOperandsLie) {
    const GpuGrid grid =
        grid_of("gemm:m=300,n=512,k=192,dtype=bf16,layout=rcr,batch=3,lda=256,batch_stride_b=0", kCluster);
    ASSERT_TRUE(grid.tensor_maps);
    const TensorMapSpec &a = (*grid.tensor_maps)[0], &b = (*grid.tensor_maps)[1], &c = (*grid.tensor_maps)[2];
    EXPECT_EQ(a.size, (std::array<std::int64_t, 3>{192, 300, 3}));
    EXPECT_EQ(a.stride_bytes[0], 256 * 2);
    EXPECT_EQ(a.box, (TensorBox{128, 64}));
    EXPECT_EQ(b.size, (std::array<std::int64_t, 3>{192, 512, 1})) << "one B serves the whole batch";
    EXPECT_EQ(b.box, (TensorBox{128, 64})) << "two blocks share the 256 columns";
    EXPECT_EQ(c.size, (std::array<std::int64_t, 3>{512, 300, 3}));
    EXPECT_EQ(c.box, (TensorBox{64, 64}));
    EXPECT_FALSE(grid_of("gemm:m=8,n=8,k=8,dtype=bf16,layout=rrc", kGeneral).tensor_maps);
}

// Counted in 32 bits, these would wrap: such problems are refused, or go to kernels that can.
TEST(BlockGrid, WhatDoesNotFit32BitsIsRefused) {
    const auto misfit = [](const std::string& problem, const std::string& kernel) {
        const Problem p = parse_problem(problem).value();
        const KernelConfig config = parse_kernel_name(kernel).value();
        const FitRule* rule = first_misfit(ProblemView(p), config, **embedded_archs().find(config.arch));
        return rule ? std::string(rule->name) : std::string();
    };
    EXPECT_EQ(misfit("gemm:m=2147483776,n=8,k=8,dtype=bf16,layout=rcr", kPersistent), "fit_gpu_range");
    EXPECT_EQ(misfit("gemm:m=8,n=8,k=4294967296,dtype=bf16,layout=rcr", kPersistent), "fit_gpu_range");
    EXPECT_EQ(misfit("gemm:m=8,n=8,k=8,batch=4294967297,dtype=bf16,layout=rrc", kGeneral), "fit_gpu_range");
    EXPECT_EQ(misfit("gemm:m=2147483776,n=8,k=8,dtype=bf16,layout=rrc", kGeneral), "");
    EXPECT_EQ(misfit("gemm:m=2147480000,n=8,k=8,dtype=bf16,layout=rcr", kPersistent), "");
    EXPECT_EQ(misfit("gemm:m=8,n=8,k=8,lda=549755813888,dtype=bf16,layout=rcr", kPersistent), "fit_gpu_range");
}

TEST(BlockGrid, TheStripIsAsWideAsKeepsTheCacheSmall) {
    // 132 tiles of 128 x 256: 7 side by side span 7 * 256 columns and 19 * 128 rows, the least of all.
    EXPECT_EQ(grid_of("gemm:m=8192,n=8192,k=64,dtype=bf16,layout=rcr", kPersistent).raster_group, 7);
    EXPECT_EQ(grid_of("gemm:m=8192,n=8192,k=64,dtype=bf16,layout=rcr",
                      kPersistent.substr(0, kPersistent.find("_pw1")) + "_group3_pw1@sm_90a")
                  .raster_group,
              3);
}

}  // namespace
}  // namespace tilewise
