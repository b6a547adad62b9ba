// SPDX-License-Identifier: MIT
#include "device/list_gpus.hpp"

#include "device/cuda/cuda_device.hpp"
#include "device/hip/hip_device.hpp"

namespace tilewise {

Result<GpuList> list_gpus(Backend backend) {
    if (backend == Backend::cuda) return list_cuda_gpus();
    if (backend == Backend::hip) return list_hip_gpus();
    return GpuList{};
}

}  // namespace tilewise
