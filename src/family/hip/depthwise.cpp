// SPDX-License-Identifier: MIT
// Depthwise convolutions in plain arithmetic: the rows of every backend, with the lanes of an AMD wave.
#include "family/families.hpp"
#include "family/gpu/depthwise_any.hpp"
#include "family/gpu/depthwise_strips.hpp"
#include "family/hip/depthwise_work.hpp"

namespace tilewise {

constinit const Family kHipDepthwiseAny =
    depthwise_any::row(Backend::hip, {hip_depthwise_work<double>, hip_depthwise_work<Term>, hip_depthwise_work<Noted>});
constinit const Family kHipDepthwiseStrips = depthwise_strips::row(
    Backend::hip, {hip_depthwise_work<double>, hip_depthwise_work<Term>, hip_depthwise_work<Noted>});

}  // namespace tilewise
