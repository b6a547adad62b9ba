// SPDX-License-Identifier: MIT
// What follows from a config before anything is compiled: threads and shared memory of blocks that share a unit, and along which
// extent of a tile an operand lies.
#include "config/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "config/rule_set.hpp"

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
