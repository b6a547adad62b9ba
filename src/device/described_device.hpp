// SPDX-License-Identifier: MIT
// A device that is somewhere else, as it described itself: kernels can be chosen and built for it, and nothing runs on it. A
// process that must not touch a GPU works with one of these.
#pragma once

#include <memory>

#include "base/json.hpp"
#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "device/device.hpp"

namespace tilewise {

// All that choosing and building kernels asks of a device.
Json describe_device(const Device& device, const ArchCatalog& archs);

// A CPU must be this machine's.
Result<std::unique_ptr<Device>> make_described_device(const Json& description, const ArchCatalog& archs);

}  // namespace tilewise
