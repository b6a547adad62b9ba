// SPDX-License-Identifier: MIT
// Every convolution kernel of a rule set, on random problems that it takes, on a real GPU, against the reference: odd geometry,
// groups, layouts, epilogues, split reductions. gpu_testing.hpp says what can be asked for.
#include "gpu/gpu_testing.hpp"
#include "run/conv_problems.hpp"

namespace tilewise {
namespace {

class GpuConv : public GpuTest, public testing::WithParamInterface<Op> {
protected:
    Draw draw() const {
        return [this](Random& random, const KernelConfig& c) {
            return conv_problem_for(random, c, device->arch(), kWork);
        };
    }
    static constexpr WorkRange kWork = {0, 8e6};
};
INSTANTIATE_TEST_SUITE_P(Directions, GpuConv, testing::Values(Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(GpuConv, EveryKernelMatchesTheReference) {
    check(kernels(GetParam(), variable("TILEWISE_TEST_RULE_SET", "default")), draw());
}

// Rounding, saturation and conversion at the end of every kind of kernel.
TEST_P(GpuConv, EveryOutputMatchesTheReference) {
    for (const DType out : {DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::bf8, DType::int8, DType::int32}) {
        check(kernels(GetParam(), "tiny", out), draw());
    }
}

// Strides, dilations and pads as large as kernels that look up every access, or add up columns, take them: those of split_image any,
// others below 2^30.
TEST_P(GpuConv, EveryKernelThatGathersTakesFarWindows) {
    KernelList list = kernels(GetParam(), variable("TILEWISE_TEST_RULE_SET", "default"));
    std::erase_if(list, [](const KernelPtr& kernel) {
        const KernelConfig& c = kernel->config;
        const bool looks_up = c.gather == Gather::plain || c.gather == Gather::async || c.gather == Gather::columns;
        return !looks_up || c.ct_filter.rank > 0 ||
               (c.specialization != Specialization::none && c.specialization != Specialization::depthwise);
    });
    check(list, [this](Random& random, const KernelConfig& c) {
        auto problem = conv_problem_for(random, c, device->arch());
        const int bits = c.split_image ? 32 : 27;
        for (int d = 0; problem && d < c.ndim; ++d) stretch_window(random, problem->conv, d, bits);
        return problem && reference_flops(*problem) < kWork.most ? problem : std::nullopt;
    });
}

// 8-bit weights of groups that fill a part of a line: a tile's buffer then holds the lines of several taps.
TEST_F(GpuTest, NarrowWeightsOfPartLinesLeaveWhole) {
    KernelList list = kernels(Op::conv_bwd_weight, "tiny", DType::fp8);
    std::erase_if(list, [](const KernelPtr& kernel) {
        const auto has = [&](const char* part) { return kernel->name.find(part) != std::string::npos; };
        return !has("_bf16_nhwgc_2d_") || !has("gather-tensor") || has("spec-");
    });
    const auto problem = [](Random&, const KernelConfig&) {
        return *parse_problem("conv_bwd_weight:n=8,g=3,c=48,k=48,in=9x9,filter=2x2,dtype=bf16,out=fp8");
    };
    check(list, problem);
}

}  // namespace
}  // namespace tilewise
