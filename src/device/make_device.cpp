// SPDX-License-Identifier: MIT
#include "device/make_device.hpp"

#include <fmt/core.h>

#include <optional>

#include "base/text.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/emulated/emulated_device.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kEmulatedPrefix = "emulated:";

// "cuda" is the first one.
std::optional<int> cuda_ordinal(std::string_view name) {
    if (name == "cuda") return 0;
    if (!name.starts_with("cuda:")) return std::nullopt;
    const auto number = parse_integer(name.substr(5));
    constexpr std::int64_t kMostDevices = 1024;
    return number && *number >= 0 && *number < kMostDevices ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

// Only a CPU can be told to be less than it is.
Result<std::unique_ptr<Device>> of_arch(Result<std::unique_ptr<Device>> device, const std::string& wanted) {
    if (!device || wanted.empty() || (*device)->arch().name == wanted) return device;
    return Error{ErrorCode::usage, fmt::format("{} is {}, not {}: leave the arch out, which only a CPU can be told",
                                               (*device)->name(), (*device)->arch().name, wanted)};
}

}  // namespace

Result<std::unique_ptr<Device>> make_device(std::string_view name, const ArchCatalog& archs,
                                            const DeviceOptions& options) {
    if (const auto ordinal = cuda_ordinal(name)) return of_arch(make_cuda_device(archs, *ordinal), options.arch);
    if (name.starts_with(kEmulatedPrefix)) {
        auto arch = archs.find(name.substr(kEmulatedPrefix.size()));
        if (!arch) return arch.error();
        return of_arch(make_emulated_device(**arch), options.arch);
    }
    if (name != "cpu") {
        return Error{ErrorCode::device,
                     fmt::format("no device '{}'; there are cpu, cuda:0, cuda:1, ... and emulated:ARCH", name)};
    }
    auto arch = options.arch.empty() ? host_cpu_arch(archs) : archs.find(options.arch);
    if (!arch) return arch.error();
    return make_cpu_device(**arch, options.threads);
}

}  // namespace tilewise
