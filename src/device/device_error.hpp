// SPDX-License-Identifier: MIT
// That a device is not there, or failed.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace tilewise {

inline Error device_error(std::string message) { return {ErrorCode::device, std::move(message)}; }

}  // namespace tilewise
