// SPDX-License-Identifier: MIT
// Requests for GPU kernels that serve others, of no family: their source is a template of kernels/gpu and one line.
#pragma once

#include <string_view>

#include "build/builder.hpp"
#include "config/arch_spec.hpp"

namespace tilewise {

// As one of code_suffixes(arch), or emulated. `lines` follow the primitives of the arch's backend.
BuildRequest gpu_request(const ArchSpec& arch, std::string_view suffix, std::string_view name, std::string_view lines);

}  // namespace tilewise
