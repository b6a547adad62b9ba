// SPDX-License-Identifier: MIT
// Memory of the host for the devices that work there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace tilewise {

// Whole units of the alignment; null when there is not that much. To be freed with std::free.
inline void* allocate_host(std::size_t bytes, std::size_t alignment) {
    if (bytes > PTRDIFF_MAX) return nullptr;  // no object is as large, and rounding it up might end at a small one
    const std::size_t units = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment;
    return std::aligned_alloc(alignment, units * alignment);
}

}  // namespace tilewise
