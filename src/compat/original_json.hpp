// SPDX-License-Identifier: MIT
// A list of kernels as the original wrote its registry. Every value is the config's own: what the config does not have,
// such as a block size on a CPU, is left out.
#pragma once

#include <string>
#include <vector>

namespace tilewise::compat {

std::string field_of(const std::string& kernel, const char* field);  // "" where there is none

// {"metadata", "statistics", "kernels"}
std::string original_json(const std::string& registry_name, const std::vector<std::string>& kernels);

}  // namespace tilewise::compat
