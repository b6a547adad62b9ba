// SPDX-License-Identifier: MIT
#include "device/make_device.hpp"

#include <fmt/core.h>

#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"

namespace tilewise {

Result<std::unique_ptr<Device>> make_device(std::string_view name, const ArchCatalog& archs,
                                            const DeviceOptions& options) {
    if (name != "cpu") {
        return Error{ErrorCode::device, fmt::format("device '{}': this build runs kernels on the cpu only", name)};
    }
    auto arch = options.arch.empty() ? host_cpu_arch(archs) : archs.find(options.arch);
    if (!arch) return arch.error();
    return make_cpu_device(**arch, options.threads);
}

}  // namespace tilewise
