// SPDX-License-Identifier: MIT
// fp32 as two tf32: the upper one is cut, which is also what wgmma does with fp32, and the lower one is what it leaves out.
#pragma once
#include "primitives.hpp"

namespace tilewise::cuda {

TILEWISE_DEVICE u32 cut_tf32(u32 x) { return x & 0xffffe000u; }
TILEWISE_DEVICE u32 rest_of(u32 x, u32 high) {  // none of infinity
    return (x & kFloatMagnitude) >= kFloatInfinity ? 0 : round_tf32(bits_of(float_of(x) - float_of(high)));
}

}  // namespace tilewise::cuda
