// SPDX-License-Identifier: MIT
#include "run/gradient_check.hpp"
#include "run/property_testing.hpp"

namespace tilewise {
namespace {

constexpr int kGeometries = 3;  // TILEWISE_TEST_GEOMETRIES asks for more, as `make test-full` does

class ConvGradient : public property_testing::PropertyTest, public testing::WithParamInterface<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, ConvGradient, testing::Values(DType::fp32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST_P(ConvGradient, TheDirectionsAreGradientsOfEachOther) {
    GradientCheck(*device_, *builder_)
        .check(GetParam(), property_testing::number("TILEWISE_TEST_GEOMETRIES", kGeometries));
}

}  // namespace
}  // namespace tilewise
