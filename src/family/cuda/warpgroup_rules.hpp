// SPDX-License-Identifier: MIT
// Rules of the families whose warpgroups multiply what tensor copies put into a ring of stages.
#pragma once

#include "family/code_rules.hpp"

namespace tilewise::warpgroup_rules {

inline constexpr int kLineBytes = 128;  // which tensor copies fill whole

bool large_boxes(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_waves(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

inline constexpr ConfigRule kBoxes = {"code_box", "a tensor copy has at most 256 lines", large_boxes};
inline constexpr ConfigRule kWarpgroups = {"code_warpgroups", "few warpgroups share the registers", other_waves};

}  // namespace tilewise::warpgroup_rules
