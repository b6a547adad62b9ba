// SPDX-License-Identifier: MIT
// Kernels on a CUDA device: loading a module, and launches made ready with their tensor maps.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/driver.hpp"
#include "device/device.hpp"

namespace tilewise {

Result<std::shared_ptr<const Code>> load_cuda_code(const cuda_driver::Driver& driver, cuda_driver::CUcontext context,
                                                   const std::string& image, const std::string& kernel);

// `waits_for_others`: the code itself waits for the kernels before it, so that it may be started while they end.
Result<std::unique_ptr<const Launch>> prepare_cuda_launch(const cuda_driver::Driver& driver,
                                                          cuda_driver::CUcontext context,
                                                          std::shared_ptr<const Code> code, const KernelArgs& args,
                                                          GpuGrid grid, bool waits_for_others);

}  // namespace tilewise
