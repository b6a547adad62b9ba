// SPDX-License-Identifier: MIT
// A client of the original functions may change these settings: the table in include/tilewise/original.h.
#pragma once

#include <string>

namespace tilewise::compat {

struct Settings {
    std::string dtype = "fp16";
    std::string layout;  // empty: rcr, or channels last
    std::string device = "auto";
    std::string rule_set = "default";
    std::string kernel;
    int warmup = 0;
    int repeat = 1;

    // Changes one; false when there is none of that name or the value is none for it.
    bool set(const std::string& name, const std::string& value);
};

// Reads the environment; a variable with a value that makes no sense is named in `problem`.
Settings settings_of_environment(std::string& problem);

}  // namespace tilewise::compat
