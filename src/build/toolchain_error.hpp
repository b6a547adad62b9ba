// SPDX-License-Identifier: MIT
// That there is no compiler, or that it failed.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace tilewise {

inline Error toolchain_error(std::string message) { return {ErrorCode::toolchain, std::move(message)}; }

}  // namespace tilewise
