// SPDX-License-Identifier: MIT
// A box of bytes that a driver copies from one pitched piece of memory to another: rows behind one another, in slices that begin a whole
// number of rows apart.
#pragma once

#include <cstddef>

namespace tilewise {

struct GpuBox {
    struct Side {
        void* memory;
        std::size_t pitch, height;  // bytes between rows, rows between slices
    };
    Side from, to;
    std::size_t width_bytes, height, depth;
};

}  // namespace tilewise
