// SPDX-License-Identifier: MIT
// The formulas that the CUDA kernels' comments state and their layouts use, against what a GPU was seen to do.
#include "kernels/golden_testing.hpp"
#include "kernels/gpu/tile_layout.hpp"

namespace tilewise {
namespace {

using gpu::TileLayout;
using gpu::u32;

class GoldenFormulas : public GoldenTest {
protected:
    // Lane l has elements (l / 4, 2 (l % 4)) and the one after it of each matrix.
    void expect_matrices(const std::string& name, bool trans) {
        each(name, [&](u32 lane, u32 slot, u32 place) {
            const u32 matrix = slot / 2, row = lane / 4, column = lane % 4 * 2 + slot % 2;
            EXPECT_EQ(place, matrix << 8 | (trans ? column : row) << 4 | (trans ? row : column));
        });
    }
    template <int line_bytes, bool swizzled>
    void expect_layout(const std::string& name) {
        using Layout = TileLayout<64, line_bytes, swizzled>;
        each(name, [](u32 row, u32 column, u32 byte) { EXPECT_EQ(byte, Layout::byte_offset(row, column * 2)); });
    }
};

TEST_F(GoldenFormulas, LoadMatrices) {
    if (!have({"ldmatrix_x4", "ldmatrix_x2", "ldmatrix_x4_trans", "ldmatrix_x2_trans"})) GTEST_SKIP() << missing_;
    expect_matrices("ldmatrix_x4", false);
    expect_matrices("ldmatrix_x2", false);
    expect_matrices("ldmatrix_x4_trans", true);
    expect_matrices("ldmatrix_x2_trans", true);
}

TEST_F(GoldenFormulas, StoreMatrices) {
    if (!have({"stmatrix_x4"})) GTEST_SKIP() << missing_;
    expect_matrices("stmatrix_x4", false);
}

TEST_F(GoldenFormulas, FragmentsOfAWarp) {
    if (!have({"mma_m16n8k16"})) GTEST_SKIP() << missing_;
    each("mma_m16n8k16", [](u32 lane, u32 slot, u32 place) {
        const u32 quad = lane / 4, two = lane % 4 * 2;
        if (slot < 4) {
            EXPECT_EQ(place, (quad + slot / 2 * 8) << 4 | (two + slot % 2));
        } else if (slot < 12) {
            const u32 i = (slot - 4) / 2, half = slot % 2;
            EXPECT_EQ(place, (quad + i % 2 * 8) << 4 | (two + half + i / 2 * 8));
        } else {
            const u32 i = (slot - 12) / 2, half = slot % 2;
            EXPECT_EQ(place, (two + half + i * 8) << 4 | quad);
        }
    });
}

TEST_F(GoldenFormulas, FragmentsOfAWarpInFp64) {
    if (!have({"mma_m16n8k16_fp64"})) GTEST_SKIP() << missing_;
    each("mma_m16n8k16_fp64", [](u32 lane, u32 slot, u32 place) {
        const u32 quad = lane / 4, one = lane % 4;
        if (slot < 4) {
            EXPECT_EQ(place, (quad + slot / 2 * 8) << 4 | (one * 2 + slot % 2));
        } else if (slot < 12) {
            EXPECT_EQ(place, (quad + slot % 2 * 8) << 4 | (one + (slot - 4) / 2 * 4));
        } else {
            EXPECT_EQ(place, (one + (slot - 12) * 4) << 4 | quad);
        }
    });
}

// hopper.hpp, above the products of a warpgroup.
TEST_F(GoldenFormulas, SumsOfAWarpgroup) {
    if (!have({"wgmma_d_n16", "wgmma_d_n32", "wgmma_d_n64", "wgmma_d_n128", "wgmma_d_n256"})) GTEST_SKIP() << missing_;
    for (const int n : {16, 32, 64, 128, 256}) {
        each(fmt::format("wgmma_d_n{}", n), [](u32 thread, u32 i, u32 place) {
            const u32 row = thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8;
            const u32 column = i / 4 * 8 + thread % 4 * 2 + i % 2;
            EXPECT_EQ(place, row << 8 | column);
        });
    }
}

// The layout of operand tiles is the one that tensor copies with a swizzle as wide as the lines make, and undo.
TEST_F(GoldenFormulas, TensorCopies) {
    if (!have({"tma_128_bytes", "tma_64_bytes", "tma_32_bytes", "tma_16_bytes", "tma_96_bytes"})) {
        GTEST_SKIP() << missing_;
    }
    expect_layout<128, true>("tma_128_bytes");
    expect_layout<64, true>("tma_64_bytes");
    expect_layout<32, true>("tma_32_bytes");
    expect_layout<16, false>("tma_16_bytes");
    each("tma_96_bytes", [](u32 row, u32 column, u32 byte) { EXPECT_EQ(byte, row * 96 + column * 2); });
}

// The swizzle is one of addresses, not of places in the box: four lines on, the pattern goes on too.
TEST_F(GoldenFormulas, TensorCopiesSwizzleAddresses) {
    if (!have({"tma_128_bytes_at_512"})) GTEST_SKIP() << missing_;
    each("tma_128_bytes_at_512", [](u32 row, u32 column, u32 byte) {
        const u32 plain = 512 + row * 128 + column * 2;
        EXPECT_EQ(byte, (plain ^ (plain >> 7 & 7) << 4));
    });
}

// A box of 64 x 64 from column -8, row -3 on; a tensor of 40 x 40 in rows of 64.
constexpr u32 kLeft = 8, kAbove = 3, kKnown = 40, kRow = 64;
using OutsideLayout = TileLayout<kRow, kRow * 2>;

TEST_F(GoldenFormulas, WhatIsOutsideArrivesAsZeros) {
    if (!have({"tma_load_outside"})) GTEST_SKIP() << missing_;
    for (u32 row = 0; row < kRow; ++row) {
        for (u32 column = 0; column < kRow; ++column) {
            const u32 at = OutsideLayout::byte_offset(row, column * 2) / 2, y = row - kAbove, x = column - kLeft;
            const u32 want = y < kKnown && x < kKnown ? y * kRow + x + 1 : 0;  // below zero is large
            ASSERT_EQ(table("tma_load_outside").at(static_cast<int>(at / kRow), static_cast<int>(at % kRow)), want);
        }
    }
}

TEST_F(GoldenFormulas, WhatIsOutsideIsNotWritten) {
    if (!have({"tma_store_outside"})) GTEST_SKIP() << missing_;
    // The same box, but beginning inside: a copy out of shared memory may not begin before the tensor (the chip faults).
    each("tma_store_outside", [](u32 row, u32 column, u32 number) {
        const bool written = row >= kAbove && row < kKnown && column >= kLeft && column < kKnown;
        const u32 from = written ? OutsideLayout::byte_offset(row - kAbove, (column - kLeft) * 2) / 2 : 0;
        EXPECT_EQ(number, written ? from + 1 : 0);
    });
}

// hopper.hpp, operand_at: what `leading` and `stride` are between.
TEST_F(GoldenFormulas, DistancesOfAnOperand) {
    if (!have({"wgmma_a_along_k_far", "wgmma_b_along_n_far"})) GTEST_SKIP() << missing_;
    using Block = TileLayout<8, 128>;
    each("wgmma_a_along_k_far",
         [](u32 row, u32 k, u32 byte) { EXPECT_EQ(byte, row / 8 * 2048 + Block::byte_offset(row % 8, k * 2)); });
    each("wgmma_b_along_n_far", [](u32 column, u32 k, u32 byte) {
        EXPECT_EQ(byte, column / 64 * 16384 + k / 8 * 2048 + Block::byte_offset(k % 8, column % 64 * 2));
    });
}

// The host's conversions are the GPU's.
TEST_F(GoldenFormulas, Conversions) {
    if (!have({"convert"})) GTEST_SKIP() << missing_;
    each("convert", [&](u32 row, u32 form, u32 bits) {
        const float x = gpu::float_of(table("convert").keys[row]);
        EXPECT_EQ(bits, form < 3 ? gpu::Bf16::from_float(x) : gpu::Fp16::from_float(x)) << x;
    });
}

TEST(GoldenTable, TextAndBack) {
    GoldenTable table{"a line: what is in it", 3, {0, 0x1f, 0xffffffff}, {{1, 2}, {0xfff, 0}, {7, 8}}};
    const auto parsed = parse_golden(print_golden(table));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(*parsed, table);
    for (const char* bad : {"", "0: 1\n", "# x\n0 1\n", "# x\n0: 1g\n", "# x\n0: 123456789\n"}) {
        EXPECT_FALSE(parse_golden(bad).ok()) << bad;
    }
}

}  // namespace
}  // namespace tilewise
