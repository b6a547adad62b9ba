// SPDX-License-Identifier: MIT
#include "device/list_gpus.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include "device/cuda/driver.hpp"
#include "device/device_error.hpp"

namespace tilewise {
namespace {

Result<GpuList> list_nvidia() {
    using namespace cuda_driver;
    const auto loaded = load_driver();
    if (!loaded) return loaded.error();
    const Driver& driver = **loaded;
    GpuList list{fmt::format("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10), {}};
    int count = 0;
    if (auto status = driver.check(driver.device_get_count(&count), "cuDeviceGetCount"); !status) return status.error();
    for (int i = 0; i < count; ++i) {
        CUdevice device = 0;
        char model[128] = {};
        int major = 0, minor = 0;
        auto status = driver.check(driver.device_get(&device, i), "cuDeviceGet");
        if (status) status = driver.check(driver.device_get_name(model, sizeof model - 1, device), "cuDeviceGetName");
        if (!status) return status.error();
        driver.device_get_attribute(&major, kComputeMajor, device);
        driver.device_get_attribute(&minor, kComputeMinor, device);
        list.gpus.push_back(fmt::format("cuda:{}: {}, compute capability {}.{}", i, model, major, minor));
    }
    return list;
}

// Kernels for AMD GPUs are listed and checked, but not built or run yet, so the runtime is only looked for.
Result<GpuList> list_amd() {
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"}) {
        void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (!library) continue;
        dlclose(library);
        return GpuList{fmt::format("{}, which this version does not use yet", name), {}};
    }
    return device_error("no HIP runtime on this machine (libamdhip64.so); ROCm has it");
}

}  // namespace

Result<GpuList> list_gpus(Backend backend) {
    if (backend == Backend::cuda) return list_nvidia();
    if (backend == Backend::hip) return list_amd();
    return GpuList{};
}

}  // namespace tilewise
