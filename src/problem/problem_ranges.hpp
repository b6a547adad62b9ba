// SPDX-License-Identifier: MIT
// Several problems in one line: m=64:4096*2 is every power of two from 64 to 4096, m=64:256+32 every 32nd number. With several ranges
// every combination is meant, the last range the fastest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

// The problems' texts; a text without ranges is the only one. An error names a range that makes no sense.
Result<std::vector<std::string>> expand_ranges(std::string_view text);

}  // namespace tilewise
