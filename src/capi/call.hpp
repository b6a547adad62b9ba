// SPDX-License-Identifier: MIT
// The border between C and C++: nothing that is thrown crosses it, and every failure leaves a message behind.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "tilewise/tilewise.h"

namespace tilewise::capi {

std::string& last_error();  // of this thread

// Runs `body` and hands its text out through `out`.
tilewise_status give_text(char** out, const std::function<Result<std::string>()>& body) noexcept;

}  // namespace tilewise::capi
