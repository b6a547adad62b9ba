// SPDX-License-Identifier: MIT
// Which family a config belongs to: the algorithm, with its template. Names and JSON of configs do not say it; it follows from their
// fields, and family_of is the only place where it does. All else asks it. What a family can do is in src/family.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

enum class FamilyId : std::uint8_t {
    blocked_gemm,
    blocked_conv,
    direct_conv,
    mma_gemm,
    simt_gemm,
    fp64_gemm,
    wgmma_gemm,
    gemv,
    gemv_rows,
    mma_conv,
    simt_conv,
    im2col_conv,
    col2im_conv,
    patch_conv,
    patch_box_conv,
    first_layer_conv,
    resident_filter_conv,
    patch_wgrad,
    shifted_wgrad,
    depthwise_any,
    depthwise_strips,
    depthwise_channel_slice,
    depthwise_toeplitz,
    depthwise_block_diagonal,
    mfma_gemm,
    mfma_conv,
};
template <>
struct EnumNames<FamilyId> {
    static constexpr std::string_view kind = "family";
    static constexpr auto names = std::to_array<std::string_view>({"blocked_gemm",
                                                                   "blocked_conv",
                                                                   "direct_conv",
                                                                   "mma_gemm",
                                                                   "simt_gemm",
                                                                   "fp64_gemm",
                                                                   "wgmma_gemm",
                                                                   "gemv",
                                                                   "gemv_rows",
                                                                   "mma_conv",
                                                                   "simt_conv",
                                                                   "im2col_conv",
                                                                   "col2im_conv",
                                                                   "patch_conv",
                                                                   "patch_box_conv",
                                                                   "first_layer_conv",
                                                                   "resident_filter_conv",
                                                                   "patch_wgrad",
                                                                   "shifted_wgrad",
                                                                   "depthwise_any",
                                                                   "depthwise_strips",
                                                                   "depthwise_channel_slice",
                                                                   "depthwise_toeplitz",
                                                                   "depthwise_block_diagonal",
                                                                   "mfma_gemm",
                                                                   "mfma_conv"});
};

// By the fields alone, so that a config that has no code, or is not even valid, has a family as well.
FamilyId family_of(const KernelConfig& config);

// Products by a few vectors: the rows of A with swap_ab, else the columns of B.
bool is_gemv(FamilyId family);
// How a kernel for a few vectors reads: lines of the large operand (B with swap_ab, else A) that begin anywhere, and vectors element by
// element.
struct GemvReads {
    bool anywhere, by_element;
};
GemvReads gemv_reads(const KernelConfig& config);
// Convolutions that stage patches of pixels and multiply them by every tap, forward and backward data.
bool is_patch_conv(FamilyId family);
// Convolutions with channels of their own for each group, on GPUs.
bool is_depthwise(FamilyId family);

}  // namespace tilewise
