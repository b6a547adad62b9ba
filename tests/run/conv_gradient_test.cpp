// SPDX-License-Identifier: MIT
#include "run/gradient_check.hpp"
#include "run/property_testing.hpp"

namespace tilewise {
namespace {

#if defined(TILEWISE_SANITIZED)
constexpr int kGeometries = 3;
#else
constexpr int kGeometries = 8;
#endif

class ConvGradient : public property_testing::PropertyTest, public testing::WithParamInterface<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, ConvGradient, testing::Values(DType::fp32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST_P(ConvGradient, TheDirectionsAreGradientsOfEachOther) {
    GradientCheck(*device_, *builder_).check(GetParam(), kGeometries);
}

}  // namespace
}  // namespace tilewise
