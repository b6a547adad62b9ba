// SPDX-License-Identifier: MIT
// Depthwise convolutions in plain arithmetic: the rows of every backend, with what they cost here.
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/depthwise_any.hpp"
#include "family/gpu/depthwise_strips.hpp"

namespace tilewise {

constinit const Family kDepthwiseAny = depthwise_any::row(
    Backend::cuda, {depthwise_any_work<double>, depthwise_any_work<Term>, depthwise_any_work<Noted>});
constinit const Family kDepthwiseStrips = depthwise_strips::row(
    Backend::cuda, {depthwise_strips_work<double>, depthwise_strips_work<Term>, depthwise_strips_work<Noted>});

}  // namespace tilewise
