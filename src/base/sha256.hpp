// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4). Ids and digests cross machines and name files, so they must not collide by accident or
// by design; speed does not matter at this size.
#pragma once

#include <string>
#include <string_view>

namespace tilewise {

std::string sha256_hex(std::string_view data);  // 64 lower-case hex digits

}  // namespace tilewise
