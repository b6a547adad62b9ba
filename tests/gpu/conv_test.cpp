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

}  // namespace
}  // namespace tilewise
