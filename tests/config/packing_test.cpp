// SPDX-License-Identifier: MIT
// Operands that are packed into the workspace: lines begin on 16 bytes, nothing overlaps, and the workspace holds it all.
#include "config/packing.hpp"

#include <gtest/gtest.h>

#include <set>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/fit.hpp"
#include "config/workspace.hpp"
#include "family/may_run.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

constexpr const char* kPacking =
    "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x64x64_1x1x1_64x64x16_stages8_pers_pw1@sm_90a";

TEST(Packing, FillsTheWorkspaceWithoutOverlap) {
    const KernelConfig plain = parse_kernel_name(kPacking).value();
    const ArchSpec& arch = **embedded_archs().find("sm_90a");
    for (const int split_k : {1, 3}) {
        for (const char* text :
             {"gemm:m=7,n=9,k=1023,dtype=bf16,layout=rcr", "gemm:m=255,n=513,k=1025,dtype=bf16,layout=rcr,batch=3"}) {
            KernelConfig c = plain;
            c.split_k = split_k;
            const Problem p = parse_problem(text).value();
            const ProblemView view(p);
            ASSERT_EQ(first_misfit(view, c, arch), nullptr) << text;
            ASSERT_TRUE(packs_operand(c, arch, 0) && packs_operand(c, arch, 1));
            const PackedMatrices a = packed_matrices(p, 0), b = packed_matrices(p, 1);
            EXPECT_EQ(a.line_bytes() % kPackedBytes, 0);
            EXPECT_GE(a.line_bytes(), a.length * 2);
            const std::int64_t sums = split_k > 1 ? 4 * split_k * p.gemm.m * p.gemm.n * p.gemm.batch : 0;
            EXPECT_GE(packed_offset(p, c, arch, 0), sums);
            EXPECT_EQ(packed_offset(p, c, arch, 0) % kPackedBytes, 0);
            EXPECT_EQ(packed_offset(p, c, arch, 1), packed_offset(p, c, arch, 0) + a.bytes());
            EXPECT_EQ(workspace_bytes(view, c, arch), packed_offset(p, c, arch, 1) + b.bytes());
            const GpuGrid grid = *launch_plan(p, c, arch, 1)->gpu();
            EXPECT_GT(grid.pack_blocks, 0);
            EXPECT_EQ((*grid.tensor_maps)[0].workspace_offset, packed_offset(p, c, arch, 0));
            EXPECT_EQ((*grid.tensor_maps)[1].workspace_offset, packed_offset(p, c, arch, 1));
            EXPECT_FALSE((*grid.tensor_maps)[2].workspace_offset.has_value());
            EXPECT_EQ((*grid.tensor_maps)[1].stride_bytes[0], b.line_bytes());
        }
    }
}

TEST(Packing, IsNotForOperandsThatBeginLinesOn16Bytes) {
    KernelConfig c = parse_kernel_name(kPacking).value();
    const ArchSpec& arch = **embedded_archs().find("sm_90a");
    c.vector_a = c.vector_b = 8;
    EXPECT_FALSE(packs_operands(c, arch));
    const Problem p = parse_problem("gemm:m=64,n=64,k=64,dtype=bf16,layout=rcr").value();
    EXPECT_EQ(workspace_bytes(ProblemView(p), c, arch), 0);
    EXPECT_EQ(launch_plan(p, c, arch, 1)->gpu()->pack_blocks, 0);
}

// B that is packed ahead: whole tiles, each somewhere else, one matrix where the batch shares it.
TEST(Packing, BHasAPlaceForEveryTile) {
    const KernelConfig c =
        parse_kernel_name(
            "gemm_bf16_rcr_preshuffle_cshuffle_intrawave_64x128x64_1x1x1_64x128x16_va8_vb8_vc8_dsb_stages6@sm_90a")
            .value();
    const ArchSpec& arch = **embedded_archs().find("sm_90a");
    const Problem p = parse_problem("gemm:m=7,n=304,k=136,dtype=bf16,layout=rcr,batch=2,packed_b=1").value();
    const PackedB b = packed_b(p, c);
    EXPECT_EQ(b.tile_bytes, 128 * 64 * 2);
    EXPECT_EQ(b.tiles(), 2 * 3 * 3);
    std::set<Index> places;
    for (Index matrix = 0; matrix < 2; ++matrix) {
        for (Index column = 0; column < 3; ++column) {
            for (Index step = 0; step < 3; ++step) places.insert(b.tile_offset(matrix, column, step));
        }
    }
    EXPECT_EQ(places.size(), 18u);
    EXPECT_EQ(*places.rbegin() + b.tile_bytes, b.bytes());
    const GpuGrid grid = *launch_plan(p, c, arch, 1)->gpu();
    EXPECT_EQ(grid.packed_b_bytes, b.bytes());
    EXPECT_GT(grid.pack_b_blocks, 0);
    EXPECT_EQ((*grid.tensor_maps)[1].box, TensorBox{}) << "its tiles are copied as they lie";
    const Problem shared =
        parse_problem("gemm:m=7,n=304,k=136,dtype=bf16,layout=rcr,batch=2,batch_stride_b=0,packed_b=1").value();
    EXPECT_EQ(packed_b(shared, c).bytes() * 2, b.bytes());
}

}  // namespace
}  // namespace tilewise
