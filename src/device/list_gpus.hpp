// SPDX-License-Identifier: MIT
// Which GPUs are here, by vendor, for people to read. Starts the vendor's driver, but opens no GPU.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/backend.hpp"

namespace tilewise {

struct GpuList {
    std::string driver;             // "CUDA 13.0"
    std::vector<std::string> gpus;  // "cuda:0: NVIDIA H200, compute capability 9.0"
};

// An error where the vendor's driver is not here, or is not able to start; with the way out.
Result<GpuList> list_gpus(Backend backend);

}  // namespace tilewise
