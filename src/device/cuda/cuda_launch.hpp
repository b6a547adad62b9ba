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

Result<std::unique_ptr<const Launch>> prepare_cuda_launch(const cuda_driver::Driver& driver,
                                                          cuda_driver::CUcontext context,
                                                          std::shared_ptr<const Code> code, const KernelArgs& args,
                                                          LaunchGeometry geometry);

}  // namespace tilewise
