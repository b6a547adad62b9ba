// SPDX-License-Identifier: MIT
// Copying and clearing rows of ordinary memory: what Device::copy_rows and clear_rows are where kernels run on the host.
#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace tilewise {

// Large copies are shared among at most so many threads. Nothing is allocated once the threads are there.
void copy_host_rows(const RowCopy& copy, int threads);
void clear_host_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows, int threads);

}  // namespace tilewise
