// SPDX-License-Identifier: MIT
#include "device/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <string>

#include "device/device_error.hpp"
#include "device/gpu/start_once.hpp"

namespace tilewise::cuda_driver {
namespace {

Result<Driver> load() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return device_error(fmt::format("no NVIDIA driver on this machine: {}", dlerror()));
    Driver driver;
// NOLINTBEGIN(bugprone-macro-parentheses): a list of parameters cannot be in any
#define X(name, symbol, parameters)                                                                  \
    driver.name = reinterpret_cast<CUresult(*) parameters>(dlsym(library, symbol));                  \
    if (!driver.name) {                                                                              \
        return device_error("the NVIDIA driver has no " symbol "; need one for CUDA 12.3 or newer"); \
    }
    TILEWISE_CUDA_FUNCTIONS(X)
#undef X
    // NOLINTEND(bugprone-macro-parentheses)
    const auto started = driver.init(0);
    // The driver answers this in a child whose parent, another library in it perhaps, has started it.
    if (started == kNotInitialized) return after_fork(Driver::kName);
    if (auto status = driver.check(started, "Init"); !status) return status.error();
    if (auto status = driver.check(driver.driver_get_version(&driver.version), "DriverGetVersion"); !status) {
        return status.error();
    }
    return driver;
}

}  // namespace

std::string Driver::description() const { return fmt::format("driver {}.{}", version / 1000, version % 1000 / 10); }

CUresult Driver::copy_box(const GpuBox& box, CUstream stream) const {
    const auto side = [](const GpuBox::Side& of) {
        CUmemcpy3D::Side result{};
        result.memory_type = kDeviceMemory;
        result.device = of.memory;
        result.pitch = of.pitch, result.height = of.height;
        return result;
    };
    const CUmemcpy3D copy = {side(box.from), side(box.to), box.width_bytes, box.height, box.depth};
    return memcpy_3d_async(&copy, stream);
}

std::string Driver::reason(CUresult code) const {
    const char *name = nullptr, *text = nullptr;
    get_error_name(code, &name);
    get_error_string(code, &text);
    return fmt::format("{}: {}", name ? name : std::to_string(code), text ? text : "");
}

Result<const Driver*> load_driver() { return start_once(load); }

}  // namespace tilewise::cuda_driver
