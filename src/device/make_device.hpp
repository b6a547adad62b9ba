// SPDX-License-Identifier: MIT
// From a device's name, as users write it, to the device: the one place that knows which names there are.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "device/device.hpp"

namespace tilewise {

struct DeviceOptions {
    std::string arch;  // of the catalogue; empty: that of the device, and any other only where that is a CPU
    int threads = 0;   // CPU only; 0: every CPU this process may use
};

// `name` is "cpu", "cuda", "cuda:0", "hip:0" or "emulated:sm_90a", a GPU of that arch in slow motion. The device refers to its arch, so
// the catalogue must outlive it.
Result<std::unique_ptr<Device>> make_device(std::string_view name, const ArchCatalog& archs,
                                            const DeviceOptions& options = {});

}  // namespace tilewise
