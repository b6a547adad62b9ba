// SPDX-License-Identifier: MIT
// The emulated matrix products of AMD's waves against tables of which element each register holds (tests/golden/hip): operands are put
// where the tables say, and the sums must be where they say. An instruction takes a part of the 16 bytes that a lane gives at once, or
// twice these bytes; which k a part has follows from its number.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/sanitized.hpp"
#include "config/archs.hpp"
#include "device/emulated/calls.hpp"
#include "device/emulated/emulated_device.hpp"
#include "device/emulated/grid.hpp"
#include "device/emulated/lane_blocks.hpp"
#include "kernels/common/element.hpp"
#include "kernels/golden_table.hpp"

namespace tilewise {
namespace {

constexpr int kLanes = 64, kLaneBytes = 16, kMostPackets = 2, kMostSums = 16;
constexpr char kTables[] = TILEWISE_SOURCE_DIR "/tests/golden/hip";

struct Instruction {
    const char* name;
    KernelDType type;
    int side, depth;
};

struct Lane {
    std::array<std::uint32_t, 4 * kMostPackets> a{}, b{};
    std::array<std::uint32_t, kMostSums> sums{};
};
struct Wave {
    Machine* machine;
    KernelDType type;
    int side;
    std::array<Lane, kLanes> lanes;
    int packets;  // of 16 bytes of a lane
};

void multiply(const void* kernel) {
    auto& wave = *const_cast<Wave*>(static_cast<const Wave*>(kernel));
    Lane& lane = wave.lanes[static_cast<std::size_t>(wave.machine->me->thread)];
    for (int p = 0; p < wave.packets; ++p) {
        wave.machine->multiply_squares(wave.type, wave.type, wave.side, lane.sums.data(), &lane.a.at(4UL * p),
                                       &lane.b.at(4UL * p));
    }
}

// Small whole numbers, which every type has.
std::uint32_t bits_of_number(KernelDType type, int x) {
    return static_cast<std::uint32_t>(encode(type, static_cast<double>(x)));
}

// The calculator knows the instructions of CDNA 2 and 3, the numbers of lane_blocks.txt also those of CDNA 4.
bool is_calculated(const Instruction& of) { return !std::string_view(of.name).starts_with("gfx950"); }
Result<GoldenTable> table_of(const Instruction& of) {
    if (is_calculated(of)) return read_golden(kTables, of.name);
    const auto blocks = read_lane_blocks(kTables, of.name);
    if (!blocks) return blocks.error();
    return blocks->table();
}

class Mfma : public testing::TestWithParam<Instruction> {};

TEST_P(Mfma, BlocksOfLanesTellTheTable) {
    const Instruction& of = GetParam();
    const auto blocks = read_lane_blocks(kTables, of.name);
    ASSERT_TRUE(blocks.ok()) << blocks.error().message;
    EXPECT_EQ(static_cast<int>(blocks->side()), of.side);
    EXPECT_EQ(static_cast<int>(blocks->lanes), of.side);
    EXPECT_EQ(static_cast<int>(blocks->whole_depth()), of.depth);
    if (!is_calculated(of)) return;
    const auto table = read_golden(kTables, of.name);
    ASSERT_TRUE(table.ok()) << table.error().message;
    EXPECT_EQ(blocks->table().rows, table->rows);
}

TEST_P(Mfma, SumsAreWhereTheTableSays) {
    // Under a sanitizer the library has no fibers, whatever this file was compiled for.
    const auto device = make_emulated_device(**embedded_archs().find("gfx942"));
    if ((is_sanitized() || !kHasFibers) && !device.ok()) GTEST_SKIP() << device.error().message;
    ASSERT_TRUE(device.ok()) << device.error().message;
    const Instruction& of = GetParam();
    const auto table = table_of(of);
    ASSERT_TRUE(table.ok()) << table.error().message;
    ASSERT_EQ(table->rows.size(), static_cast<std::size_t>(kLanes));
    const int bytes = element_bytes(of.type), sums = of.side * of.side / kLanes, each = of.side * of.depth / kLanes;
    const int packets = std::max(1, each * bytes / kLaneBytes);
    const int parts = packets * kLaneBytes / (each * bytes), depth = of.depth * parts;
    Random random(7);
    std::vector<std::vector<int>> a(static_cast<std::size_t>(of.side)), b(static_cast<std::size_t>(depth));
    for (auto& row : a) {
        for (int k = 0; k < depth; ++k) row.push_back(static_cast<int>(random.between(-4, 4)));
    }
    for (auto& row : b) {
        for (int c = 0; c < of.side; ++c) row.push_back(static_cast<int>(random.between(-4, 4)));
    }
    Machine machine = emulated::machine_calls();
    Wave wave{&machine, of.type, of.side, {}, packets};
    const auto put = [&](auto& words, int element, int x) {
        const std::uint32_t bits = bits_of_number(of.type, x);
        std::memcpy(reinterpret_cast<char*>(words.data()) + element * bytes, &bits, static_cast<std::size_t>(bytes));
    };
    for (int l = 0; l < kLanes; ++l) {
        Lane& lane = wave.lanes[static_cast<std::size_t>(l)];
        for (int part = 0; part < parts; ++part) {
            for (int e = 0; e < each; ++e) {
                const std::uint32_t in_a = table->at(l, sums + e), in_b = table->at(l, sums + each + e);
                const std::size_t first = static_cast<std::size_t>(part * of.depth);
                put(lane.a, part * each + e, a.at(in_a >> 8).at(first + (in_a & 0xff)));
                put(lane.b, part * each + e, b.at(first + (in_b >> 8)).at(in_b & 0xff));
            }
        }
    }
    emulated::GridSpec grid;
    grid.blocks = 1, grid.threads = kLanes, grid.lanes = kLanes;
    grid.call = multiply, grid.kernel = &wave;
    FiberStacks stacks;
    const emulated::MemoryMap memory;
    const auto status = emulated::Grid(grid, machine, stacks, memory).run();
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (int l = 0; l < kLanes; ++l) {
        for (int i = 0; i < sums; ++i) {
            const std::uint32_t place = table->at(l, i);
            int sum = 0;
            for (std::size_t k = 0; k < static_cast<std::size_t>(depth); ++k)
                sum += a.at(place >> 8)[k] * b[k].at(place & 0xff);
            const std::uint32_t bits = wave.lanes[static_cast<std::size_t>(l)].sums[static_cast<std::size_t>(i)];
            const bool whole = of.type == KernelDType::int8;
            EXPECT_EQ(whole ? static_cast<int>(bits) : static_cast<int>(__builtin_bit_cast(float, bits)), sum)
                << "lane " << l << ", sum " << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Instructions, Mfma,
                         testing::Values(Instruction{"gfx90a_mfma_f32_32x32x8bf16_1k", KernelDType::bf16, 32, 8},
                                         Instruction{"gfx90a_mfma_i32_16x16x16i8", KernelDType::int8, 16, 16},
                                         Instruction{"gfx942_mfma_f32_32x32x8_bf16", KernelDType::bf16, 32, 8},
                                         Instruction{"gfx942_mfma_f32_16x16x16_f16", KernelDType::fp16, 16, 16},
                                         Instruction{"gfx942_mfma_i32_32x32x16_i8", KernelDType::int8, 32, 16},
                                         Instruction{"gfx942_mfma_i32_16x16x32_i8", KernelDType::int8, 16, 32},
                                         Instruction{"gfx942_mfma_f32_32x32x2_f32", KernelDType::fp32, 32, 2},
                                         Instruction{"gfx942_mfma_f32_16x16x4_f32", KernelDType::fp32, 16, 4},
                                         Instruction{"gfx950_mfma_f32_32x32x16_f16", KernelDType::fp16, 32, 16},
                                         Instruction{"gfx950_mfma_f32_16x16x32_f16", KernelDType::fp16, 16, 32},
                                         Instruction{"gfx950_mfma_f32_32x32x16_bf16", KernelDType::bf16, 32, 16},
                                         Instruction{"gfx950_mfma_f32_16x16x32_bf16", KernelDType::bf16, 16, 32},
                                         Instruction{"gfx950_mfma_i32_32x32x32_i8", KernelDType::int8, 32, 32},
                                         Instruction{"gfx950_mfma_i32_16x16x64_i8", KernelDType::int8, 16, 64},
                                         Instruction{"gfx950_mfma_f32_32x32x64_f8f6f4", KernelDType::fp8, 32, 64},
                                         Instruction{"gfx950_mfma_f32_16x16x128_f8f6f4", KernelDType::fp8, 16, 128}),
                         [](const auto& instruction) { return std::string(instruction.param.name); });

// The same product of subnormal numbers where matrix units take them for zero and where they do not.
TEST(MfmaSubnormals, AreZeroWhereTheChipTakesThemForZero) {
    const auto device = make_emulated_device(**embedded_archs().find("gfx90a"));
    if ((is_sanitized() || !kHasFibers) && !device.ok()) GTEST_SKIP() << device.error().message;
    ASSERT_TRUE(device.ok()) << device.error().message;
    constexpr std::uint32_t kTwoSubnormals = 0x00010001, kTwoOnes = 0x3c003c00;
    for (const bool flushes : {false, true}) {
        Machine machine = emulated::machine_calls();
        Wave wave{&machine, KernelDType::fp16, 16, {}, 1};
        for (Lane& lane : wave.lanes) lane.a.fill(kTwoSubnormals), lane.b.fill(kTwoOnes);
        emulated::GridSpec grid;
        grid.blocks = 1, grid.threads = kLanes, grid.lanes = kLanes, grid.flushes_subnormals = flushes;
        grid.call = multiply, grid.kernel = &wave;
        FiberStacks stacks;
        const emulated::MemoryMap memory;
        const auto status = emulated::Grid(grid, machine, stacks, memory).run();
        ASSERT_TRUE(status.ok()) << status.error().message;
        for (const Lane& lane : wave.lanes) {
            EXPECT_EQ(__builtin_bit_cast(float, lane.sums[0]), flushes ? 0.0F : 32 * 0x1p-24F);
        }
    }
}

}  // namespace
}  // namespace tilewise
