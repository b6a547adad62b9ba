// SPDX-License-Identifier: MIT
#include "codegen/conv_family.hpp"

namespace tilewise {

ConvFamily conv_family(const KernelConfig& c) {
    if (c.specialization == Specialization::depthwise) return ConvFamily::depthwise;
    if (c.gather == Gather::halo) return ConvFamily::halo;
    return c.gather == Gather::tensor ? ConvFamily::tensor : ConvFamily::gather;
}

}  // namespace tilewise
