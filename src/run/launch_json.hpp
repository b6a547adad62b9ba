// SPDX-License-Identifier: MIT
// A launch in JSON: all that the host has worked out before the pointers are known.
#pragma once

#include "base/json.hpp"
#include "device/device.hpp"

namespace tilewise {

Json launch_to_json(const LaunchGeometry& launch);  // what is 0, or empty, is left out

}  // namespace tilewise
