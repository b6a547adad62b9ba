// SPDX-License-Identifier: MIT
#include "gpu/gpu_testing.hpp"
#include "run/gradient_check.hpp"

namespace tilewise {
namespace {

class GpuGradient : public GpuTest, public testing::WithParamInterface<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, GpuGradient, testing::Values(DType::fp32, DType::fp16, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST_P(GpuGradient, TheDirectionsAreGradientsOfEachOther) {
    constexpr int kGeometries = 20;
    GradientCheck(*device, *builder).check(GetParam(), kGeometries);
}

}  // namespace
}  // namespace tilewise
