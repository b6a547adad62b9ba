// SPDX-License-Identifier: MIT
// The original's convolution structs as problem texts.
#pragma once

#include <string>

#include "compat/session.hpp"
#include "tilewise/original.h"

namespace tilewise::compat {

// "" when the direction is none of the three, or the layout setting is none of its two words.
std::string conv_text(const ConvProblemC& problem, const Settings& settings);

ConvProblemC with_direction(const ConvBwdwProblemC& problem);

// Milliseconds, or a code. Pointers in the order of the original; backward weight has them the other way round here.
float run_conv(Session& session, const void* a, const void* b, void* c, const ConvProblemC* problem, void* stream);

}  // namespace tilewise::compat
