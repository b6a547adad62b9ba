// SPDX-License-Identifier: MIT
// Launches captured in one CUDA graph and replayed between two events: what timing on a GPU wants, since the host then has no
// part in it.
#pragma once

#include <memory>

#include "device/cuda/driver.hpp"
#include "device/device.hpp"

namespace tilewise {

Result<std::unique_ptr<Recording>> record_graph(const cuda_driver::Driver& driver, cuda_driver::CUcontext context,
                                                const RecordedWork& work, std::int64_t calls);

}  // namespace tilewise
