// SPDX-License-Identifier: MIT
#include "device/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <string>

#include "base/fork_safe_mutex.hpp"
#include "device/device_error.hpp"

namespace tilewise::cuda_driver {
namespace {

Error after_fork() {
    return device_error(
        "CUDA was started before this process was forked and cannot be used here; start the workers before the first "
        "use of the GPU, or by spawning instead of forking");
}

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
    if (started == kNotInitialized) return after_fork();
    if (auto status = driver.check(started, "cuInit"); !status) return status.error();
    if (auto status = driver.check(driver.driver_get_version(&driver.version), "cuDriverGetVersion"); !status) {
        return status.error();
    }
    return driver;
}

}  // namespace

Error Driver::failure(const char* call, CUresult code) const {
    const char *name = nullptr, *text = nullptr;
    get_error_name(code, &name);
    get_error_string(code, &text);
    return device_error(fmt::format("{} failed: {}: {}", call, name ? name : std::to_string(code), text ? text : ""));
}

Result<const Driver*> load_driver() {
    static std::optional<Driver> driver;
    static pid_t owner = 0;
    {
        const std::scoped_lock lock(fork_safe_mutex());
        if (driver && owner != getpid()) return after_fork();
        if (driver) return &*driver;
    }
    // Without the lock, which a fork waits for: starting the driver may take seconds, and twice does no harm.
    auto loaded = load();
    if (!loaded) return loaded.error();
    const std::scoped_lock lock(fork_safe_mutex());
    if (!driver) {
        driver = *loaded;
        owner = getpid();
    }
    return &*driver;
}

}  // namespace tilewise::cuda_driver
