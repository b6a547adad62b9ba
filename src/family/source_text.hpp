// SPDX-License-Identifier: MIT
// Pieces of generated source that every backend writes the same way.
#pragma once

#include <string>
#include <string_view>

#include "config/kernel_config.hpp"

namespace tilewise {

std::string_view element_type(DType dtype);                           // "Bf16": the tag of kernels/*/types.hpp
std::string shape_lines(std::string_view name, const Shape3& shape);  // three constants
// The config's name without its launch fields: the same for all configs that share a binary.
std::string code_name(const KernelConfig& config);

}  // namespace tilewise
