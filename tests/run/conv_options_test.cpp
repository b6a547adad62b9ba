// SPDX-License-Identifier: MIT
// The options of convolution kernels, each on and off: other machine code, right results both ways, the workspace it is said
// to need, and a rule with a reason where an arch, a direction or a pipeline does not have it.
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "config/rules.hpp"
#include "config/workspace.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "run/conv_problems.hpp"
#include "run/property_testing.hpp"

namespace tilewise {
namespace {

constexpr Op kDirections[] = {Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight};

struct Option {
    std::string_view field;
    void (*turn_on)(KernelConfig&);
    bool takes_workspace;  // whatever the problem
};

const Option kOptions[] = {
    // A second buffer is filled by a pipeline that knows how.
    {"double_smem_buffer", [](KernelConfig& c) { c.double_smem_buffer = true, c.pipeline = Pipeline::compv4; }, false},
    {"num_groups_to_merge", [](KernelConfig& c) { c.num_groups_to_merge = 4; }, false},
    {"split_image", [](KernelConfig& c) { c.split_image = true; }, false},
    {"explicit_gemm", [](KernelConfig& c) { c.explicit_gemm = true; }, true},
    {"two_stage", [](KernelConfig& c) { c.two_stage = true; }, true},
};

KernelConfig plain_config(const ArchSpec& arch, Op op) {
    KernelConfig c;
    c.op = op;
    c.ndim = 2;
    c.arch = arch.name;
    c.pipeline = Pipeline::compv3;
    c.wave = {1, 1, 1};
    // The last is the deepest; those of fp32 have a depth of 1 on every CPU.
    c.warp_tile = arch.find_warp_tiles({DType::fp32, DType::fp32})->tiles.front();
    c.tile = {c.warp_tile.m * 4, c.warp_tile.n * 2, 64 * c.warp_tile.k};
    return c;
}

KernelConfig with(KernelConfig config, const Option& option) {
    option.turn_on(config);
    return config;
}

class ConvOptions : public property_testing::PropertyTest, public testing::WithParamInterface<Op> {
protected:
    std::string machine_code(const KernelConfig& config) {
        const auto request = build_request(config, *device_);
        if (!request) return ADD_FAILURE() << request.error().message, "";
        const auto built = builder_->build(*request);
        if (!built) return ADD_FAILURE() << built.error().message, "";
        return read_file(built->path).value();
    }
    void run_some(Random& random, const Kernel& kernel) {
        constexpr int kRuns = 12;
        for (int i = 0; i < kRuns; ++i) {
            const auto problem = conv_problem_for(random, kernel.config, *arch_);
            ASSERT_TRUE(problem.has_value()) << kernel.name;
            if (!run_and_check(random, *problem, kernel)) return;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Direction, ConvOptions, testing::ValuesIn(kDirections),
                         [](const auto& op) { return std::string(name_of(op.param)); });

TEST_P(ConvOptions, EachChangesTheCodeAndIsRightOnAndOff) {
    Random random(909);
    const KernelConfig off = plain_config(*arch_, GetParam());
    ASSERT_TRUE(check_config(off, *arch_).empty()) << check_config(off, *arch_)[0].have;
    const std::string code = machine_code(off);
    // The comparison means something: what no template looks at makes no difference.
    KernelConfig same = off;
    same.pad.m = false;
    EXPECT_EQ(machine_code(same), code);
    run_some(random, make_kernel(off));
    for (const Option& option : kOptions) {
        if (!arch_->has_option(option.field, GetParam())) continue;
        const KernelConfig on = with(off, option);
        SCOPED_TRACE(option.field);
        ASSERT_TRUE(check_config(on, *arch_).empty()) << check_config(on, *arch_)[0].have;
        EXPECT_NE(code_id(on), code_id(off));
        EXPECT_NE(machine_code(on), code);
        run_some(random, make_kernel(on));
    }
}

TEST_P(ConvOptions, TheWorkspaceIsWhatTheOptionNeeds) {
    const KernelConfig off = plain_config(*arch_, GetParam());
    Problem p = *parse_problem("conv_fwd:n=2,g=4,c=8,k=12,in=9x9,filter=3x3,dtype=fp32");
    p.op = GetParam();
    const ProblemView view(p);
    EXPECT_EQ(workspace_bytes(view, off, *arch_), 0);
    for (const Option& option : kOptions) {
        const KernelConfig on = with(off, option);
        // Chunks of images are summed up one after the other.
        const bool sums = on.split_image && p.op == Op::conv_bwd_weight;
        EXPECT_EQ(workspace_bytes(view, on, *arch_) > 0, option.takes_workspace || sums) << option.field;
    }
}

// One arch after the other, with the rule, what was asked for and what the arch has instead.
TEST(ConvOptionRules, AnArchOrDirectionWithoutAnOptionSaysSo) {
    int refused = 0, taken = 0;
    for (const ArchSpec& arch : embedded_archs().archs()) {
        for (const Op op : kDirections) {
            for (const Option& option : kOptions) {
                KernelConfig c = plain_config(arch, op);
                option.turn_on(c);
                const auto violations = check_config(c, arch);
                const auto at = std::find_if(violations.begin(), violations.end(),
                                             [](const Rejected& r) { return r.rule == "option"; });
                if (arch.has_option(option.field, op)) {
                    ++taken;
                    EXPECT_EQ(at, violations.end()) << arch.name << " " << at->have;
                    continue;
                }
                ++refused;
                ASSERT_NE(at, violations.end()) << arch.name << " takes " << option.field;
                EXPECT_NE(at->have.find(option.field), std::string::npos) << at->have;
                EXPECT_EQ(at->need,
                          "the default: " + arch.name + " has no such option for " + std::string(name_of(op)));
            }
        }
    }
    EXPECT_GT(refused, 0) << "two_stage is for backward weight alone";
    EXPECT_GT(taken, refused);
}

TEST(ConvOptionRules, ASecondBufferBelongsToItsPipeline) {
    const ArchSpec& arch = arch_named("cpu-generic");
    for (const Op op : kDirections) {
        KernelConfig single = plain_config(arch, op);
        single.double_smem_buffer = true;
        const auto violations = check_config(single, arch);
        ASSERT_EQ(violations.size(), 1u);
        EXPECT_EQ(violations[0],
                  (Rejected{"double_buffer", "compv3 with double_smem_buffer=true", "double_smem_buffer=false"}));
    }
}

TEST(ConvOptionRules, OnlySplitImagesPassTheIndexLimit) {
    const ArchSpec& arch = arch_named("cpu-generic");
    for (const Op op : kDirections) {
        Problem huge = *parse_problem("conv_fwd:n=4096,c=64,k=64,in=128x128,filter=1x1,dtype=fp32");
        huge.op = op;
        KernelConfig c = plain_config(arch, op);
        Rejected why;
        ASSERT_FALSE(may_run(ProblemView(huge), c, arch, &why));
        EXPECT_EQ(why,
                  (Rejected{"fit_index_range", "a tensor of 4294967296 elements", "fewer than 2^31, or split_image"}));
        c.split_image = true;
        EXPECT_TRUE(may_run(ProblemView(huge), c, arch, &why)) << why.rule;
    }
}

TEST(ConvOptionRules, MergedGroupsMustDivideTheGroups) {
    const ArchSpec& arch = arch_named("cpu-generic");
    for (const Op op : kDirections) {
        Problem p = *parse_problem("conv_fwd:n=2,g=6,c=12,k=12,in=9x9,filter=3x3,dtype=fp32");
        p.op = op;
        KernelConfig c = plain_config(arch, op);
        c.num_groups_to_merge = 4;
        Rejected why;
        ASSERT_FALSE(may_run(ProblemView(p), c, arch, &why));
        EXPECT_EQ(why, (Rejected{"fit_groups", "num_groups_to_merge 4", "a divisor of g=6"}));
    }
}

}  // namespace
}  // namespace tilewise
