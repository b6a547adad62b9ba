// SPDX-License-Identifier: MIT
// The source of a CPU kernel: a struct of constants, and the macro of the family's template.
#pragma once

#include <string>
#include <string_view>

#include "config/kernel_config.hpp"

namespace tilewise {

// `family` is a folder of kernels/cpu and the header in it that begins the template; upper-case, it is the macro's name. `lines` are its
// own constants.
std::string cpu_source(std::string_view family, const KernelConfig& config, std::string_view lines);

// The pipeline, which says what is packed.
std::string cpu_pipeline_line(const KernelConfig& config);
// Direction and options of a convolution.
std::string cpu_conv_lines(const KernelConfig& config);

}  // namespace tilewise
