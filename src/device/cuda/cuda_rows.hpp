// SPDX-License-Identifier: MIT
// Copying and clearing rows on a GPU: calls of the driver that go into the stream and are recorded by a capture. The
// context must be current.
#pragma once

#include "base/result.hpp"
#include "device/cuda/driver.hpp"
#include "device/device.hpp"

namespace tilewise {

Status copy_cuda_rows(const cuda_driver::Driver& driver, const RowCopy& copy, cuda_driver::CUstream stream);
Status clear_cuda_rows(const cuda_driver::Driver& driver, void* memory, std::int64_t pitch, std::int64_t row_bytes,
                       std::int64_t rows, cuda_driver::CUstream stream);

}  // namespace tilewise
