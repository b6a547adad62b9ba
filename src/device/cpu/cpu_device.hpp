// SPDX-License-Identifier: MIT
// The host CPU as a device: kernels are shared objects (or built into the library), a launch runs their parts on the
// thread pool and returns when they are done.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "device/device.hpp"

namespace tilewise {

// `threads` 0 means every CPU this process may use.
Result<std::unique_ptr<Device>> make_cpu_device(const ArchSpec& arch, int threads = 0);

}  // namespace tilewise
