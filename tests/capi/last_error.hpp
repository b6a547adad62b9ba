// SPDX-License-Identifier: MIT
// Repeats what the last call of this thread had to say, for the messages of tests.
#pragma once

#include <string>

#include "tilewise/tilewise.h"

inline std::string last_error() { return tilewise_last_error(); }
