// SPDX-License-Identifier: MIT
// Random convolutions of odd geometry on random kernels of the host's arch, against the reference: all directions, types and
// kinds of kernels that there are. TILEWISE_TEST_CONV_CONFIGS says how many kernels, TILEWISE_TEST_CONV_PROBLEMS how many
// problems are tried on each (`make test-full` asks for more), TILEWISE_TEST_ARCH another CPU arch that the host is.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "base/sanitized.hpp"
#include "config/rule_set.hpp"
#include "config/rules.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "run/conv_problems.hpp"
#include "run/property_testing.hpp"

namespace tilewise {
namespace {

using property_testing::number;

// As for GEMM (gemm_property_test.cpp); a kernel takes about a second of compiling.
constexpr int kConvKernels = 6;
const int kConvProblemsEach = is_sanitized() ? 20 : 60;

// One run in so many is large enough for several threads.
constexpr int kThreadedPercent = 5;

constexpr Op kConvOps[] = {Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight};

// Any kernel of the full rule set; the rare kinds (depthwise, merged groups, two stages, ...) are as likely as the rest.
std::optional<Kernel> random_kernel(Random& random, const Device& device, Op op, const DTypePair& pair) {
    std::optional<DType> out;
    if (random.chance(30)) out = random.pick(std::array{DType::fp32, DType::bf16, DType::fp16});
    const auto configs = expand(device.arch(), op, pair, RuleSet::full, out);
    if (!configs) return {};
    std::map<std::string_view, std::vector<const KernelConfig*>> kinds;
    for (const KernelConfig& config : *configs) {
        if (has_code(config, device.arch()) && !device.refuses(config)) kinds[category(config)].push_back(&config);
    }
    if (kinds.empty()) return {};
    const auto kind = std::next(kinds.begin(), random.between(0, static_cast<std::int64_t>(kinds.size()) - 1));
    return make_kernel(*random.pick(kind->second));
}

// `count` kernels of all directions in turn; with each round of directions the next pair of types.
std::vector<Kernel> random_conv_kernels(Random& random, const Device& device, int first, int count) {
    std::vector<Kernel> kernels;
    const auto pairs = pairs_of(device.arch());
    for (int i = first; i < first + count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const DTypePair pair = pairs[at / std::size(kConvOps) % pairs.size()];
        if (auto kernel = random_kernel(random, device, kConvOps[at % std::size(kConvOps)], pair)) {
            kernels.push_back(std::move(*kernel));
        }
    }
    return kernels;
}

// In parts, so that they can run side by side.
constexpr int kConvParts = 4;
constexpr int kConvPartStep = 10;  // as for GEMM
class ConvProperty : public property_testing::PropertyTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Part, ConvProperty, testing::Range(0, kConvParts));

TEST_P(ConvProperty, RandomProblemsOnRandomKernelsMatchTheReference) {
    Random random(4051 + static_cast<std::uint64_t>(GetParam()));
    const int count = (number("TILEWISE_TEST_CONV_CONFIGS", kConvKernels) + kConvParts - 1) / kConvParts;
    const std::vector<Kernel> kernels = random_conv_kernels(random, *device_, GetParam() * kConvPartStep, count);
    if (kernels.empty()) GTEST_SKIP() << "no convolution kernels for " << arch_->name;
    build_ahead(kernels);
    const int problems = number("TILEWISE_TEST_CONV_PROBLEMS", kConvProblemsEach);
    std::size_t runs = 0;
    for (const Kernel& kernel : kernels) {
        const std::size_t before = runs;
        for (int i = 0; i < problems; ++i) {
            const WorkRange work = random.chance(kThreadedPercent) ? kThreadedConv : kSmallConv;
            const auto problem = conv_problem_for(random, kernel.config, *arch_, work);
            if (!problem) continue;
            ++runs;
            if (!run_and_check(random, *problem, kernel)) break;
        }
        EXPECT_GT(runs, before) << kernel.name << " took none of the problems";
    }
    std::printf("%zu runs of %zu kernels\n", runs, kernels.size());
}

// A blocked kernel of fp32 backward data for each pipeline that there is code for.
std::vector<Kernel> blocked_kernels(const ArchSpec& arch) {
    std::vector<Kernel> kernels;
    for (const Pipeline pipeline :
         {Pipeline::basic_v1, Pipeline::mem, Pipeline::compv3, Pipeline::compv4, Pipeline::preshuffle}) {
        KernelConfig c;
        c.op = Op::conv_bwd_data, c.ndim = 2, c.arch = arch.name, c.pipeline = pipeline;
        c.double_smem_buffer = pipeline == Pipeline::compv4;
        c.wave = {1, 1, 1};
        c.warp_tile = arch.find_warp_tiles({DType::fp32, DType::fp32})->tiles.front();
        c.tile = {c.warp_tile.m * 4, c.warp_tile.n * 2, 64 * c.warp_tile.k};
        if (check_config(c, arch).empty() && has_code(c, arch)) kernels.push_back(make_kernel(c));
    }
    return kernels;
}

class ConvGaps : public property_testing::PropertyTest {};

// Three quarters of the pixels meet no tap: their sums have no step, but get the bias, what is added and the activation.
TEST_F(ConvGaps, PixelsThatNoTapMeetsGetTheEpilogue) {
    Random random(77);
    const std::vector<Kernel> kernels = blocked_kernels(*arch_);
    ASSERT_GE(kernels.size(), 4u);
    build_ahead(kernels);
    int runs = 0;
    for (const char* epilogue : {"bias", "add", "bias+add+relu"}) {
        const Problem problem = *parse_problem(
            std::string("conv_bwd_data:n=2,g=1,c=128,k=64,in=8x8,filter=1x1,stride=2x2,dtype=fp32,epilogue=") +
            epilogue);
        for (const Kernel& kernel : kernels) {
            if (!may_run(ProblemView(problem), kernel.config, *arch_)) continue;
            ++runs;
            EXPECT_TRUE(run_and_check(random, problem, kernel)) << epilogue;
        }
    }
    EXPECT_GE(runs, 12);
}

// Kernels that take two rows of taps at once stage both, also where a plane of the filter has an odd number of rows. Builds with the
// address sanitizer see what is written behind the scratch memory.
TEST_F(ConvGaps, RowsOfOddPlanesOfTheFilterAreStaged) {
    Random random(78);
    for (const Op op : {Op::conv_fwd, Op::conv_bwd_data}) {
        const auto configs = expand(*arch_, op, {DType::bf16, DType::bf16}, RuleSet::standard);
        ASSERT_TRUE(configs.ok());
        const auto pairs = std::ranges::find_if(*configs, [](const KernelConfig& c) {
            return c.specialization == Specialization::depthwise && c.ndim == 3 && c.warp_tile.k == 2;
        });
        if (pairs == configs->end()) GTEST_SKIP() << arch_->name << " has no kernel that takes two rows at once";
        for (const int filter : {3, 5}) {
            Problem problem =
                *parse_problem("conv_fwd:n=1,g=64,c=64,k=64,in=7x7x40,filter=3x3x3,pad=1,dtype=bf16,layout=ngcdhw");
            problem.op = op;
            for (int d = 0; d < 3; ++d) problem.conv.filter[d] = filter;
            ASSERT_TRUE(may_run(ProblemView(problem), *pairs, *arch_));
            EXPECT_TRUE(run_and_check(random, problem, make_kernel(*pairs)));
        }
    }
}

}  // namespace
}  // namespace tilewise
