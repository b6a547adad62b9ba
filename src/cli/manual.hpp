// SPDX-License-Identifier: MIT
// The tables of commands, variables and problem fields as a manual page and as JSON, for packages and for the documentation.
#pragma once

#include <string>

#include "base/json.hpp"

namespace tilewise::cli {

std::string manual_page();  // troff, for man(1)
Json commands_json();

}  // namespace tilewise::cli
