// SPDX-License-Identifier: MIT
// Operands that share memory: the test of bytes against a list of all of them, and what a launch may and may not have.
#include "run/overlap.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "problem/problem_text.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

std::set<std::int64_t> bytes_of_nest(const RowNest& nest, std::int64_t from) {
    std::set<std::int64_t> all;
    for (std::int64_t i = 0; i < nest.blocks; ++i) {
        for (std::int64_t j = 0; j < nest.rows; ++j) {
            for (std::int64_t b = 0; b < nest.row_bytes; ++b)
                all.insert(from + i * nest.block_pitch + j * nest.row_pitch + b);
        }
    }
    return all;
}

// Rows that do not overlap; blocks neither, if they are apart.
RowNest random_nest(Random& random, bool apart) {
    RowNest nest;
    nest.blocks = random.between(1, 3), nest.rows = random.between(1, 4), nest.row_bytes = random.between(0, 5);
    nest.row_pitch = std::max<std::int64_t>(1, nest.row_bytes + random.between(0, 7));
    const std::int64_t span = (nest.rows - 1) * nest.row_pitch + nest.row_bytes;
    nest.block_pitch = apart ? std::max<std::int64_t>(1, span + random.between(0, 9)) : random.between(1, 30);
    if (random.chance(40)) nest.block_pitch = (nest.block_pitch / nest.row_pitch + 1) * nest.row_pitch;
    return nest;
}

TEST(Overlap, SharingAByteIsExact) {
    Random random(2026);
    int sharing = 0, interleaved = 0;
    for (int i = 0; i < draws(40000); ++i) {
        const RowNest written = random_nest(random, true);
        RowNest other = random_nest(random, false);
        if (random.chance(40)) other.row_pitch = written.row_pitch;  // columns of one array
        other.row_bytes = std::min(other.row_bytes, other.row_pitch);
        const Footprint one = Footprint::of(written), two = Footprint::of(other);
        const std::int64_t distance = random.between(-two.bytes - 2, one.bytes + 2);
        const auto left = bytes_of_nest(written, 0), right = bytes_of_nest(other, distance);
        bool want = false;
        for (const std::int64_t byte : right) want |= left.count(byte) > 0;
        ASSERT_EQ(share_a_byte(one, two, distance), want)
            << written.blocks << 'x' << written.rows << 'x' << written.row_bytes << " pitches " << written.block_pitch
            << ' ' << written.row_pitch << "; " << other.blocks << 'x' << other.rows << 'x' << other.row_bytes
            << " pitches " << other.block_pitch << ' ' << other.row_pitch << " at " << distance;
        sharing += want ? 1 : 0;
        const bool ranges_meet =
            !left.empty() && !right.empty() && *left.begin() < *right.rbegin() && *right.begin() < *left.rbegin();
        interleaved += !want && ranges_meet ? 1 : 0;
    }
    EXPECT_GT(sharing, draws(40000) / 10);
    EXPECT_GT(interleaved, draws(40000) / 100);
}

// Addresses that nobody reads.
template <class T = const void>
T* address(std::uintptr_t at) {
    return reinterpret_cast<T*>(at);
}

struct Placed {
    std::string_view name;
    std::string_view problem;
    std::uintptr_t a, b, c, more, workspace;  // `more` is what the problem has besides: bias, d0 or scale_b
    std::string_view refused;                 // what the message names; "" for a launch that is fine
};

constexpr std::string_view kPlain = "gemm:m=8,n=8,k=8,dtype=fp32";                 // 256 bytes each
constexpr std::string_view kSlices = "gemm:m=8,n=8,k=8,dtype=fp32,lda=16,ldc=16";  // rows of 32 bytes, 64 apart

const Placed kPlaced[] = {
    {"apart", kPlain, 0x10000, 0x20000, 0x30000, 0, 0, ""},
    {"side by side", kPlain, 0x10000, 0x10200, 0x10100, 0, 0, ""},
    {"inputs may overlap each other", kPlain, 0x10000, 0x10080, 0x30000, 0, 0, ""},
    {"a is c", kPlain, 0x10000, 0x20000, 0x10000, 0, 0, "c overlaps a"},
    {"b is c", kPlain, 0x10000, 0x20000, 0x20000, 0, 0, "c overlaps b"},
    {"one element of a", kPlain, 0x10000, 0x20000, 0x100fc, 0, 0, "c overlaps a"},
    {"one element of c", kPlain, 0x100fc, 0x20000, 0x10000, 0, 0, "c overlaps a"},
    {"columns of one array", kSlices, 0x10000, 0x20000, 0x10020, 0, 0, ""},
    {"columns of one array, c first", kSlices, 0x10020, 0x20000, 0x10000, 0, 0, ""},
    {"columns that share one", kSlices, 0x10000, 0x20000, 0x1001c, 0, 0, "c overlaps a"},
    {"columns that reach into the next row", kSlices, 0x10000, 0x20000, 0x10024, 0, 0, "c overlaps a"},
    {"another pitch in a gap of c", "gemm:m=2,n=2,k=2,dtype=fp32,ldc=8", 0x10008, 0x20000, 0x10000, 0, 0, ""},
    {"another pitch across c", "gemm:m=2,n=2,k=2,dtype=fp32,ldc=4", 0x10008, 0x20000, 0x10000, 0, 0, "c overlaps a"},
    {"bias in c", "gemm:m=8,n=8,k=8,dtype=fp32,epilogue=bias", 0x10000, 0x20000, 0x30000, 0x30010, 0,
     "c overlaps bias"},
    {"d is c", "gemm:m=8,n=8,k=8,dtype=fp32,d=add", 0x10000, 0x20000, 0x30000, 0x30000, 0, ""},
    {"d is nearly c", "gemm:m=8,n=8,k=8,dtype=fp32,d=add", 0x10000, 0x20000, 0x30000, 0x30004, 0, "c overlaps d0"},
    {"scale in c", "gemm:m=8,n=8,k=8,dtype=fp32,scale=tensor", 0x10000, 0x20000, 0x30000, 0x300fc, 0,
     "c overlaps scale_b"},
    {"workspace in c", kPlain, 0x10000, 0x20000, 0x30000, 0, 0x300ff, "the workspace overlaps c"},
    {"workspace in a", kPlain, 0x10000, 0x20000, 0x30000, 0, 0xffc1, "the workspace overlaps a"},
    {"workspace before a", kPlain, 0x10000, 0x20000, 0x30000, 0, 0xffc0, ""},
    {"a batch of c in the gaps of one of a",
     "gemm:m=8,n=8,k=8,batch=2,dtype=fp32,batch_stride_a=128,batch_stride_c=128", 0x10000, 0x20000, 0x10100, 0, 0, ""},
    {"a batch of c in one of a", "gemm:m=8,n=8,k=8,batch=2,dtype=fp32,batch_stride_c=128", 0x10000, 0x20000, 0x10100, 0,
     0, "c overlaps a"},
    {"a convolution", "conv_fwd:n=1,g=1,c=8,k=8,in=8,filter=1,dtype=fp32", 0x10000, 0x20000, 0x100c0, 0, 0,
     "c overlaps a"},
};

TEST(Overlap, WhatALaunchMayHave) {
    constexpr std::int64_t kWorkspaceBytes = 64;
    for (const Placed& placed : kPlaced) {
        const auto problem = parse_problem(placed.problem);
        ASSERT_TRUE(problem.ok()) << problem.error().message;
        Operands operands;
        operands.a = address(placed.a), operands.b = address(placed.b), operands.c = address<void>(placed.c);
        operands.bias = operands.d[0] = address(placed.more);
        operands.scale_a = address<const float>(0x50000), operands.scale_b = address<const float>(placed.more);
        operands.workspace = address<void>(placed.workspace);
        const OverlapCheck check(*problem, placed.workspace ? kWorkspaceBytes : 0, 0);
        const Status status = check.check_launch(operands);
        ASSERT_EQ(status.ok(), placed.refused.empty()) << placed.name;
        if (status) continue;
        EXPECT_EQ(status.error().code, ErrorCode::usage);
        EXPECT_NE(status.error().message.find(placed.refused), std::string::npos) << status.error().message;
    }
}

// The check ignores the pointers of operands that the problem does not have.
TEST(Overlap, OnlyOperandsOfTheProblemCount) {
    Operands operands;
    operands.a = address(0x10000), operands.b = address(0x20000), operands.c = address<void>(0x30000);
    operands.bias = operands.d[3] = operands.workspace = operands.c;
    EXPECT_TRUE(OverlapCheck(*parse_problem(kPlain), 0, 0).check_launch(operands));
}

TEST(Overlap, APackedBHasItsOwnSize) {
    const OverlapCheck check(*parse_problem("gemm:m=8,n=8,k=8,dtype=fp32,packed_b=1"), 0, 1024);
    Operands operands;
    operands.a = address(0x10000), operands.b = address(0x20000), operands.c = address<void>(0x20400);
    EXPECT_TRUE(check.check_launch(operands));
    operands.c = address<void>(0x203fc);
    EXPECT_FALSE(check.check_launch(operands));
    EXPECT_TRUE(check.check_packing(address(0x10000), address(0x10100)));
    EXPECT_FALSE(check.check_packing(address(0x10000), address(0x10000)));
    EXPECT_FALSE(check.check_packing(address(0x10000), address(0x10000 - 1023)));
    EXPECT_TRUE(check.check_packing(address(0x10000), address(0x10000 - 1024)));
}

// No tap of this filter meets the image, so that B packed has no bytes.
TEST(Overlap, APackedBWithoutBytesOverlapsNothing) {
    const OverlapCheck check(
        *parse_problem("conv_bwd_data:n=1,c=8,k=8,in=1x1,filter=1x4,pad=0x3,dtype=fp32,packed_b=1"), 0, 0);
    Operands operands;
    operands.a = address(0x10000), operands.b = address(0x20000), operands.c = address<void>(0x20040);
    EXPECT_TRUE(check.check_launch(operands));
}

}  // namespace
}  // namespace tilewise
