// SPDX-License-Identifier: MIT
// The rows of the table of families, each in a file of its own.
#pragma once

#include "family/family.hpp"

namespace tilewise {

// cpu/
extern const Family kBlockedGemm, kBlockedConv, kDirectConv;
// cuda/
extern const Family kMmaGemm, kSimtGemm, kFp64Gemm, kWgmmaGemm, kGemv, kGemvRows;
extern const Family kMmaConv, kSimtConv, kIm2colConv, kCol2imConv;
extern const Family kPatchConv, kPatchBoxConv, kFirstLayerConv, kResidentFilterConv, kPatchWgrad, kShiftedWgrad;
extern const Family kDepthwiseAny, kDepthwiseStrips, kDepthwiseChannelSlice, kDepthwiseToeplitz,
    kDepthwiseBlockDiagonal;
// hip/
extern const Family kMfmaGemm, kMfmaConv, kHipDepthwiseAny, kHipDepthwiseStrips;

}  // namespace tilewise
