// SPDX-License-Identifier: MIT
// Rules of the convolution families that gather the activation: threads fetch its elements one access at a time, for any problem.
// The loops and the arithmetic are those of GEMM.
#pragma once

#include "family/code_rules.hpp"

namespace tilewise::gather_conv {

inline constexpr Pipeline kPipelines[] = {Pipeline::basic_v1, Pipeline::mem,        Pipeline::compv3,
                                          Pipeline::compv4,   Pipeline::comp_async, Pipeline::basic_async_v1};
inline constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "num_groups_to_merge", "blocks_per_unit"};

bool other_gather(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool shared_classes(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool three_products(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool vectors_across(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

inline constexpr ConfigRule kGathersAsThePipeline = {
    "code_gather", "copies are asynchronous or not, in the pipeline as in the gathering", other_gather};
inline constexpr ConfigRule kWholeSteps = {"code_stream_k", "classes of backward data have unlike numbers of steps",
                                           shared_classes,
                                           [](KernelConfig& c, const ArchSpec&) { c.stream_k = StreamK::off; }};
inline constexpr ConfigRule kOneProduct = {"code_math", "halves of inputs are made for GEMM only", three_products};
inline constexpr ConfigRule kVectorsAlongChannels = {
    "code_channels", "vectors run along channels", vectors_across,
    [](KernelConfig& c, const ArchSpec&) { c.vector_a = c.vector_b = c.vector_c = 1; }};

}  // namespace tilewise::gather_conv
