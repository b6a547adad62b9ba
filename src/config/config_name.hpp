// SPDX-License-Identifier: MIT
// A config's name and id. The name prints the leading fields in a fixed order, then every other field that is not
// at its default as _tag, _tagNUMBER or _tag-WORD in table order, then @arch:
//   gemm_bf16_rcr_compv4_cshuffle_intrawave_256x128x64_2x2x1_32x32x16_va8_vb8_vc8_dsb@gfx942
//   grouped_conv_fwd_bf16_nhwgc_2d_mem_default_interwave_64x64x32_2x2x1_16x16x16_merge4@gfx90a
// It parses back to the same config. The id is a hash of the name, so a new field at its default changes no id.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

inline constexpr std::size_t kMaxNameLength = 160;

std::string kernel_name(const KernelConfig& config);
void append_kernel_name(const KernelConfig& config, std::string& name);
Result<KernelConfig> parse_kernel_name(std::string_view name);

std::string kernel_id(std::string_view name);  // 16 hex digits
// The id with every launch field at its default: kernels that share it share one binary.
std::string code_id(const KernelConfig& config);

}  // namespace tilewise
