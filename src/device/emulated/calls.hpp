// SPDX-License-Identifier: MIT
// The table of functions that an emulated kernel calls (common/machine.hpp), each for the launch under way (grid.hpp).
#pragma once

#include "kernels/common/machine.hpp"

namespace tilewise::emulated {

Machine machine_calls();

}  // namespace tilewise::emulated
