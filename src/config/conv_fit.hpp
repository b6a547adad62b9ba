// SPDX-License-Identifier: MIT
// Rules of config/fit.hpp that concern convolutions alone: each is broken where it returns true, and says so in `out` unless null.
#pragma once

#include "config/fit.hpp"

namespace tilewise {

bool not_specialised(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out);
bool other_filter(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out);
bool beyond_depthwise(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out);
bool cannot_merge(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out);
bool beyond_im2col(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out);
bool beyond_columns(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out);

}  // namespace tilewise
