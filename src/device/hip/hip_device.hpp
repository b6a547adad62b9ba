// SPDX-License-Identifier: MIT
// AMD GPUs through the HIP runtime. A device of the runtime has one context for the whole process, so pointers and streams of other
// libraries in it (torch) can be used as they are.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "device/device.hpp"
#include "device/list_gpus.hpp"

namespace tilewise {

// Starts the runtime. The arch is the catalog's of the name that the device gives itself, with the units and the cache that this very
// device has. No arch stands in for another.
Result<std::unique_ptr<Device>> make_hip_device(const ArchCatalog& catalog, int ordinal);

Result<GpuList> list_hip_gpus();

}  // namespace tilewise
