// SPDX-License-Identifier: MIT
// NVIDIA GPUs through the driver's interface. Uses each device's primary context, so pointers and streams of other
// libraries in the process (torch) can be used as they are.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "device/device.hpp"
#include "device/list_gpus.hpp"

namespace tilewise {

// Starts the driver. The arch is the catalog's for the device's compute capability, with the number of multiprocessors and
// the size of the cache that this very device has.
Result<std::unique_ptr<Device>> make_cuda_device(const ArchCatalog& catalog, int ordinal);

Result<GpuList> list_cuda_gpus();

}  // namespace tilewise
