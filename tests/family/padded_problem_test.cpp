// SPDX-License-Identifier: MIT
// Padding a problem for a kernel: random pairs of the two, and the cases where it does not help.
#include "family/padded_problem.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "config/archs.hpp"
#include "config/geometry.hpp"
#include "family/may_run.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

// A kernel that takes the problem but for its sizes: of its operation, types and layout, with tiles and vectors at random.
KernelConfig config_for(Random& random, const Problem& p) {
    KernelConfig c;
    c.op = p.op;
    c.dtype = p.dtype_a, c.dtype_b = p.dtype_b, c.dtype_out = p.dtype_out;
    c.layout = p.layout;
    c.ndim = p.op == Op::gemm ? 0 : p.conv.in.rank;
    c.arch = "gfx942";
    const auto extent = [&] {
        return static_cast<int>(random.chance(70) ? 1 << random.between(0, 7) : random.between(1, 48));
    };
    c.tile = {extent(), extent(), extent()};
    c.pad = {random.chance(50), random.chance(50), random.chance(50)};
    for (int i = 0; i < 3; ++i) set_vector_width(c, i, 1 << random.between(0, 4));
    if (is_conv(p.op) && random.chance(40)) c.num_groups_to_merge = static_cast<int>(random.between(1, 8));
    if (is_depthwise(p) && random.chance(80)) {
        c.specialization = Specialization::depthwise;
        c.num_groups_to_merge = 1;
    }
    return c;
}

Problem any_problem(Random& random) {
    Problem p = random_problem(random, 12);
    p.math = Math::strict;
    p.packed_b = false;
    if (is_conv(p.op) && random.chance(20)) {  // depthwise, with one or more outputs for every input channel
        p.conv.g = p.conv.c = random.between(2, 20);
        p.conv.k = p.conv.g * random.between(1, 3);
    }
    return p;
}

// The sizes that padding may change, one by one.
std::vector<std::int64_t> sizes_of(const Problem& p) {
    if (p.op == Op::gemm) return {p.gemm.m, p.gemm.n, p.gemm.k};
    return {p.conv.n, p.conv.g, p.conv.c / p.conv.g, p.conv.k / p.conv.g};
}

Problem with_sizes(Problem p, const std::vector<std::int64_t>& sizes) {
    if (p.op == Op::gemm) {
        p.gemm.m = sizes[0], p.gemm.n = sizes[1], p.gemm.k = sizes[2];
        p.gemm.leading = {kPacked, kPacked, kPacked};
        for (std::int64_t& stride : p.gemm.batch_stride) stride = stride == 0 ? 0 : kPacked;
    } else {
        p.conv.n = sizes[0], p.conv.g = sizes[1];
        p.conv.c = sizes[1] * sizes[2], p.conv.k = sizes[1] * sizes[3];
    }
    return p;
}

void check_sizes(const Problem& given, const Problem& padded, const KernelConfig& config, const ArchSpec& arch) {
    const GemmView before = gemm_view(given), after = gemm_view(padded);
    EXPECT_GE(after.m, before.m);
    EXPECT_GE(after.n, before.n);
    EXPECT_GE(after.k, before.k);
    EXPECT_GE(after.batch, before.batch);
    const auto from = sizes_of(given), to = sizes_of(padded);
    for (std::size_t i = 0; i < to.size(); ++i) {
        ASSERT_GE(to[i], from[i]);
        auto smaller = to;
        for (smaller[i] = from[i]; smaller[i] < to[i]; ++smaller[i]) {
            const Problem less = with_sizes(padded, smaller);
            ASSERT_FALSE(may_run(ProblemView(less), config, arch)) << print_problem(less) << " would have been enough";
        }
    }
    Problem same = with_sizes(padded, from);
    same.gemm.leading = given.gemm.leading, same.gemm.batch_stride = given.gemm.batch_stride;
    same.align_bytes = given.align_bytes, same.workspace_bytes = given.workspace_bytes;
    EXPECT_EQ(same, given) << "nothing else may change";
}

void check_tensors(const Problem& given, const PaddedProblem& padded, const KernelConfig& config) {
    for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (padded.copied[at] || given.op != Op::gemm) continue;
        EXPECT_EQ(leading_stride(given, i), leading_stride(padded.problem, i));
        EXPECT_EQ(batch_stride(given, i), batch_stride(padded.problem, i));
        EXPECT_TRUE(starts_aligned(given, config, i));
    }
    std::int64_t end = 0;
    for (const PaddedTensor& tensor : padded.tensors.tensors) {
        const RowNest &from = tensor.given, &to = tensor.padded;
        EXPECT_EQ(tensor.offset % kPaddedAlignment, 0);
        EXPECT_GE(tensor.offset, end) << "copies overlap";
        EXPECT_GE(to.blocks, from.blocks);
        EXPECT_GE(to.rows, from.rows);
        EXPECT_GE(to.row_bytes, from.row_bytes);
        EXPECT_EQ(to.row_pitch, to.row_bytes);
        EXPECT_EQ(to.block_pitch, to.row_bytes * to.rows);
        end = tensor.offset + to.blocks * to.block_pitch;
        if (tensor.role <= TensorRole::c) {
            const auto operand = static_cast<std::size_t>(tensor.role);
            const DType types[] = {given.dtype_a, given.dtype_b, given.dtype_out};
            EXPECT_EQ(from.blocks * from.rows * from.row_bytes,
                      operand_elements(given)[operand] * bytes_of(types[operand]));
            EXPECT_EQ(to.blocks * to.block_pitch, operand_elements(padded.problem)[operand] * bytes_of(types[operand]));
        }
    }
    EXPECT_LE(end + kPaddedAlignment - 1, padded.tensors.bytes);
}

TEST(PaddedProblem, IsTheSmallestThatFitsTheKernel) {
    Random random(71);
    const ArchSpec& arch = arch_named("gfx942");
    int padded_gemms = 0, padded_convs = 0, refused = 0;
    for (int i = 0; i < 30000 && !testing::Test::HasFailure(); ++i) {
        const Problem problem = any_problem(random);
        const KernelConfig config = config_for(random, problem);
        SCOPED_TRACE(print_problem(problem) + "\n" + kernel_name(config));
        Rejected ordinary, why;
        const bool runs = may_run(ProblemView(problem), config, arch, &ordinary);
        const auto padded = padded_problem(problem, config, arch, &why);
        if (runs) {
            EXPECT_FALSE(padded) << "it fits as it is";
            continue;
        }
        if (!padded) {
            EXPECT_TRUE(why == ordinary || why.rule == "fit_workspace") << why.rule << " for " << ordinary.rule;
            const bool has_neighbours = problem.op == Op::gemm || is_channels_last(problem.layout);
            // D tensors have rules of their own on the tile.
            if (has_neighbours && d_count(problem) == 0 && config.specialization == Specialization::none &&
                why.rule != "fit_workspace") {
                EXPECT_FALSE(is_about_sizes(why.rule)) << "sizes are all there is to it";
            }
            ++refused;
            continue;
        }
        ++(problem.op == Op::gemm ? padded_gemms : padded_convs);
        EXPECT_TRUE(is_about_sizes(ordinary.rule)) << ordinary.rule;
        Rejected still;
        ASSERT_TRUE(may_run(ProblemView(padded->problem), config, arch, &still)) << still.rule << still.have;
        ASSERT_FALSE(check_problem(padded->problem)) << check_problem(padded->problem)->have;
        check_sizes(problem, padded->problem, config, arch);
        check_tensors(problem, *padded, config);
        EXPECT_EQ(padded->note->kind, "padding");
        EXPECT_NE(padded->note->message.find(ordinary.rule), std::string::npos);
    }
    std::printf("%d gemms and %d convolutions padded, %d refused\n", padded_gemms, padded_convs, refused);
    EXPECT_GT(padded_gemms, 1000);
    EXPECT_GT(padded_convs, 1000);
    EXPECT_GT(refused, 100);
}

constexpr std::string_view kPaddedGemm =
    "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942";
constexpr std::string_view kWholeTiles =
    "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8_pad-none@gfx942";
constexpr std::string_view kPaddedConv =
    "grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8@gfx942";

std::optional<PaddedProblem> padded(std::string_view problem, std::string_view kernel, Rejected* why = nullptr) {
    return padded_problem(parse_problem(problem).value(), parse_kernel_name(kernel).value(), arch_named("gfx942"), why);
}

TEST(PaddedProblem, SaysWhatItPadsAndWhy) {
    const auto whole = padded("gemm:m=100,n=128,k=100,dtype=bf16,layout=rcr", kWholeTiles);
    ASSERT_TRUE(whole);
    EXPECT_EQ(print_problem(whole->problem), "gemm:m=128,n=128,k=128,dtype=bf16,layout=rcr");
    EXPECT_EQ(whole->note->message,
              "the kernel does not take the problem as it is (rule fit_padding: have m=100 without padding; need a "
              "multiple of the tile's 128), so it is padded: m from 100 to 128, k from 100 to 128; every run copies a, "
              "b, c through 98560 bytes of workspace; tilewise select lists kernels that need none");
    EXPECT_EQ(whole->note->code, ErrorCode::unsupported);
}

TEST(PaddedProblem, OperandsThatFitStayWhereTheyAre) {
    const auto rows = padded("gemm:m=100,n=128,k=64,dtype=bf16,layout=rcr,lda=66", kPaddedGemm);
    ASSERT_TRUE(rows) << "the rows of A begin off 16 bytes";
    EXPECT_EQ(rows->copied, (std::array{true, false, false}));
    EXPECT_NE(rows->note->message.find("no size"), std::string::npos) << rows->note->message;
    EXPECT_EQ(rows->problem.gemm.leading[0], kPacked);

    const auto depth = padded("gemm:m=100,n=128,k=60,dtype=bf16,layout=rcr,ldc=160", kPaddedGemm);
    ASSERT_TRUE(depth);
    EXPECT_EQ(depth->copied, (std::array{true, true, false}));
    EXPECT_EQ(depth->problem.gemm.leading[2], 160);

    const auto pointers = padded("gemm:m=100,n=128,k=64,dtype=bf16,layout=rcr,align=4", kPaddedGemm);
    ASSERT_TRUE(pointers);
    EXPECT_EQ(pointers->copied, (std::array{true, true, true}));
    EXPECT_EQ(pointers->problem.align_bytes, 16);
}

TEST(PaddedProblem, AConvolutionGetsChannelsImagesOrGroups) {
    const auto channels = padded("conv_fwd:n=4,g=2,c=6,k=10,in=14x14,filter=3x3,dtype=bf16,layout=nhwgc", kPaddedConv);
    ASSERT_TRUE(channels);
    EXPECT_EQ(channels->problem.conv.c, 16);
    EXPECT_EQ(channels->problem.conv.k, 16);
    EXPECT_EQ(channels->problem.conv.n, 4);
    EXPECT_NE(channels->note->message.find("c from 6 to 16, k from 10 to 16"), std::string::npos);

    const std::string whole = std::string(kPaddedConv).insert(kPaddedConv.find('@'), "_pad-nk");
    const auto images = padded("conv_fwd:n=3,g=2,c=16,k=16,in=16x16,filter=4x4,stride=4,dtype=bf16", whole);
    ASSERT_TRUE(images);
    EXPECT_EQ(images->problem.conv.n, 8) << "16 outputs each, 128 to a tile";
    EXPECT_EQ(images->copied, (std::array{true, false, true}));

    const std::string merging = std::string(kPaddedConv).insert(kPaddedConv.find('@'), "_merge4");
    const auto groups = padded("conv_fwd:n=3,g=6,c=12,k=12,in=16x16,filter=3x3,dtype=bf16", merging);
    ASSERT_TRUE(groups);
    EXPECT_EQ(groups->problem.conv.g, 8);
    EXPECT_EQ(groups->problem.conv.c, 64) << "weights have eight channels side by side";
    EXPECT_EQ(groups->problem.conv.k, 16);
}

TEST(PaddedProblem, HelpsOnlyWithSizes) {
    Rejected why;
    EXPECT_FALSE(padded("gemm:m=100,n=128,k=60,dtype=fp16,layout=rcr", kPaddedGemm, &why));
    EXPECT_EQ(why.rule, "fit_dtype");
    // Neighbours are pixels, of which there cannot be more.
    const std::string first = std::string(kPaddedConv).replace(kPaddedConv.find("nhwgc"), 5, "ngchw");
    EXPECT_FALSE(padded("conv_fwd:n=4,c=16,k=16,in=13x13,filter=3x3,dtype=bf16,layout=ngchw", first, &why));
    EXPECT_EQ(why.rule, "fit_vector");
    // The form of a packed B depends on the sizes it was packed for.
    std::string preshuffle(kWholeTiles);
    preshuffle.replace(preshuffle.find("compv3"), 6, "preshuffle");
    EXPECT_FALSE(padded("gemm:m=100,n=128,k=100,dtype=bf16,layout=rcr,packed_b=1", preshuffle, &why));
    EXPECT_EQ(why.rule, "fit_padding");
    EXPECT_FALSE(padded("gemm:m=100,n=128,k=100,dtype=bf16,layout=rcr,workspace=1K", kWholeTiles, &why));
    EXPECT_EQ(why.rule, "fit_workspace");
    EXPECT_EQ(why.have, "98560 bytes of workspace, with copies for padding");
    EXPECT_TRUE(padded("gemm:m=100,n=128,k=100,dtype=bf16,layout=rcr,workspace=98560", kWholeTiles));
}

}  // namespace
}  // namespace tilewise
