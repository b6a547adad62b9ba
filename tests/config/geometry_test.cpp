// SPDX-License-Identifier: MIT
// A config says before anything is compiled: threads and shared memory of blocks that share a unit, and along which extent of a
// tile an operand lies.
#include "config/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "config/random_config.hpp"
#include "config/rule_set.hpp"
#include "config/rules.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

TEST(Geometry, BlocksThatShareAUnitFitIntoItTogether) {
    const ArchSpec& arch = **embedded_archs().find("sm_90a");
    constexpr std::int64_t kUnitBytes = 228 << 10, kOwnBytes = 1 << 10;  // of which every block takes some by itself
    const auto configs = expand(arch, Op::gemm, {DType::bf16, DType::bf16}, RuleSet::standard, std::nullopt);
    ASSERT_TRUE(configs.ok());
    int sharing = 0;
    for (const KernelConfig& c : *configs) {
        if (!shares_unit(c, arch)) continue;
        ++sharing;
        SCOPED_TRACE(kernel_name(c));
        EXPECT_EQ(threads_per_block(c, arch), wave_count(c) * arch.wide_wave_size + arch.wave_size);
        EXPECT_LE(shared_bytes(c, arch) + c.blocks_per_unit * kOwnBytes, kUnitBytes);
        EXPECT_FALSE(c.persistent);
    }
    EXPECT_GT(sharing, 10);
}

KernelConfig first_of(FamilyId family, const ArchSpec& arch, Op op) {
    const auto configs = expand(arch, op, {DType::bf16, DType::bf16}, RuleSet::standard, std::nullopt);
    EXPECT_TRUE(configs.ok());
    const auto found = std::ranges::find(*configs, family, family_of);
    EXPECT_NE(found, configs->end()) << name_of(family);
    return found == configs->end() ? KernelConfig{} : *found;
}

bool breaks_shared_memory(const KernelConfig& c, const ArchSpec& arch) {
    return std::ranges::count(check_config(c, arch), "shared_memory", &Rejected::rule) > 0;
}

// A walk down the tile holds lines of inputs, weights and sums: not what the extents of the tile say.
TEST(Geometry, DepthwiseBlocksHoldWhatTheyWalkWith) {
    const ArchSpec& arch = arch_named("sm_90a");
    KernelConfig strips = first_of(FamilyId::depthwise_strips, arch, Op::conv_fwd);
    const std::int64_t weights = product(strips.ct_filter) * strips.tile.n * 4;
    EXPECT_GT(block_shared_bytes(strips, arch), weights);
    const std::int64_t before = block_shared_bytes(strips, arch);
    strips.tile.m *= 4;
    EXPECT_EQ(block_shared_bytes(strips, arch), before) << "the walk is longer, the block as large";

    KernelConfig slice = first_of(FamilyId::depthwise_channel_slice, arch, Op::conv_fwd);
    slice.blocks_per_unit = 1;
    EXPECT_EQ(shared_bytes(slice, arch), arch.shared_bytes) << "all that a block may have";
    EXPECT_FALSE(breaks_shared_memory(slice, arch));
    slice.blocks_per_unit = 1000;
    EXPECT_TRUE(breaks_shared_memory(slice, arch)) << "not even the weights fit";
    slice.blocks_per_unit = 1;
    slice.arch = "sm_80";
    EXPECT_TRUE(breaks_shared_memory(slice, arch_named("sm_80"))) << "which has less";

    KernelConfig weights_of_lines = first_of(FamilyId::depthwise_toeplitz, arch, Op::conv_bwd_weight);
    weights_of_lines.blocks_per_unit = 2;
    EXPECT_FALSE(breaks_shared_memory(weights_of_lines, arch));
    weights_of_lines.blocks_per_unit = 3;
    EXPECT_TRUE(breaks_shared_memory(weights_of_lines, arch));
}

TEST(Geometry, SharedMemoryOfAnythingIsCounted) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    Random random(21);
    for (const ArchSpec& arch : embedded_archs().archs()) {
        for (int i = 0; i < draws(2000); ++i) {
            KernelConfig c = random_config(random, 50);
            if (random.chance(50)) c.op = Op::conv_fwd, c.specialization = Specialization::depthwise;
            c.arch = arch.name;
            ASSERT_GE(shared_bytes(c, arch), 0) << kernel_name(c);
            ASSERT_LE(shared_bytes(c, arch), kMost) << kernel_name(c);
        }
    }
}

TEST(Geometry, ChipsWithFewDoubleUnitsHaveNoKernelsForThem) {
    ArchSpec arch = **embedded_archs().find("sm_90a");
    const auto count = [&] {
        const auto configs = expand(arch, Op::gemm, {DType::fp32, DType::fp32}, RuleSet::standard, std::nullopt);
        EXPECT_TRUE(configs.ok());
        return std::pair(std::ranges::count(*configs, FamilyId::fp64_gemm, family_of), configs->size());
    };
    const auto [doubles, all] = count();
    EXPECT_GT(doubles, 0);
    leave_out_doubles(arch);
    EXPECT_EQ(count(), std::pair(std::ptrdiff_t{0}, all - static_cast<std::size_t>(doubles)));
}

TEST(Geometry, SwappedTilesLieAcross) {
    KernelConfig c = parse_kernel_name(
                         "gemm_bf16_rrr_compv6_cshuffle_intrawave_64x16x64_1x1x1_64x16x16_va8_vb8_vc8_stages8_swap_pw1@"
                         "sm_90a")
                         .value();
    EXPECT_EQ(contiguous_tile_extent(c, 1), 64);  // B along n, which is the tile's rows
    EXPECT_EQ(contiguous_tile_extent(c, 2), 64);
    c.swap_ab = false;
    EXPECT_EQ(contiguous_tile_extent(c, 1), 16);
    EXPECT_EQ(contiguous_tile_extent(c, 0), 64);  // A along k
}

}  // namespace
}  // namespace tilewise
