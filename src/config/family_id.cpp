// SPDX-License-Identifier: MIT
#include "config/family_id.hpp"

#include "config/backend.hpp"

namespace tilewise {
namespace {

constexpr int kWarpgroupRows = 64;  // of the warp tile of warpgroup instructions

// Asked of every kernel of a choice many times: the prefixes are known here, and most names differ in the first character.
template <Backend backend>
bool is_of(const KernelConfig& c) {
    constexpr std::string_view prefix = facts_of(backend).arch_prefix;
    if (c.arch.size() < prefix.size()) return false;
    for (std::size_t i = 0; i < prefix.size(); ++i) {
        if (c.arch[i] != prefix[i]) return false;
    }
    return true;
}
bool is_hip(const KernelConfig& c) { return is_of<Backend::hip>(c); }

bool is_plain_arithmetic(const KernelConfig& c) { return c.dtype == DType::fp32 && c.warp_tile.k == 1; }

FamilyId cpu_family(const KernelConfig& c) {
    if (c.op == Op::gemm) return FamilyId::blocked_gemm;
    const bool few_inputs = c.specialization == Specialization::depthwise || c.num_groups_to_merge > 1;
    return few_inputs ? FamilyId::direct_conv : FamilyId::blocked_conv;
}

FamilyId gemm_family(const KernelConfig& c) {
    if (is_hip(c)) return FamilyId::mfma_gemm;
    constexpr Shape3 kVectors{16, 4, 1}, kFp64{16, 8, 1};
    if (c.warp_tile == kVectors) {
        // Whether the large operand lies across k or along it.
        const bool across = c.swap_ab ? is_row(c.layout, 1) : !is_row(c.layout, 0);
        return across ? FamilyId::gemv_rows : FamilyId::gemv;
    }
    if (c.dtype == DType::fp32 && c.warp_tile == kFp64) return FamilyId::fp64_gemm;
    if (c.warp_tile.m == kWarpgroupRows) return FamilyId::wgmma_gemm;
    return is_plain_arithmetic(c) ? FamilyId::simt_gemm : FamilyId::mma_gemm;
}

FamilyId depthwise_family(const KernelConfig& c) {
    constexpr int kToeplitzChannels = 16;
    if (c.pipeline == Pipeline::basic_async_v1) return FamilyId::depthwise_channel_slice;
    if (c.warp_tile.k > 1) {
        return c.tile.n == kToeplitzChannels ? FamilyId::depthwise_toeplitz : FamilyId::depthwise_block_diagonal;
    }
    return c.ct_filter.rank > 0 ? FamilyId::depthwise_strips : FamilyId::depthwise_any;
}

FamilyId patch_family(const KernelConfig& c) {
    if (c.op == Op::conv_bwd_weight) {
        return c.warp_tile.m == kWarpgroupRows || c.producer_waves > 0 ? FamilyId::shifted_wgrad
                                                                       : FamilyId::patch_wgrad;
    }
    if (c.warp_tile.m == kWarpgroupRows) return FamilyId::resident_filter_conv;
    if (c.op == Op::conv_fwd && c.vector_a == 1) return FamilyId::first_layer_conv;
    return c.pipeline == Pipeline::mem ? FamilyId::patch_box_conv : FamilyId::patch_conv;
}

}  // namespace

FamilyId family_of(const KernelConfig& c) {
    if (is_of<Backend::cpu>(c)) return cpu_family(c);
    if (c.op == Op::gemm) return gemm_family(c);
    if (c.specialization == Specialization::depthwise) return depthwise_family(c);
    if (is_hip(c)) return FamilyId::mfma_conv;
    if (c.gather == Gather::halo) return patch_family(c);
    if (c.gather == Gather::tensor) return FamilyId::im2col_conv;
    if (c.gather == Gather::columns) return FamilyId::col2im_conv;
    return is_plain_arithmetic(c) ? FamilyId::simt_conv : FamilyId::mma_conv;
}

bool is_gemv(FamilyId family) { return family == FamilyId::gemv || family == FamilyId::gemv_rows; }

GemvReads gemv_reads(const KernelConfig& c) {
    return {(c.swap_ab ? c.vector_b : c.vector_a) == 1, (c.swap_ab ? c.vector_a : c.vector_b) == 1};
}

bool is_patch_conv(FamilyId family) { return family == FamilyId::patch_conv || family == FamilyId::patch_box_conv; }

bool is_depthwise(FamilyId family) {
    return family >= FamilyId::depthwise_any && family <= FamilyId::depthwise_block_diagonal;
}

}  // namespace tilewise
