// SPDX-License-Identifier: MIT
// Memory of a device, given back when the last user is gone.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "device/device.hpp"

namespace tilewise {

inline Result<std::shared_ptr<void>> device_memory(Device& device, std::int64_t bytes) {
    auto memory = device.allocate(static_cast<std::size_t>(bytes));
    if (!memory) return memory.error();
    return std::shared_ptr<void>(*memory, [&device](void* mine) { device.release(mine); });
}

}  // namespace tilewise
