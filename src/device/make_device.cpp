// SPDX-License-Identifier: MIT
#include "device/make_device.hpp"

#include <fmt/core.h>

#include <optional>

#include "base/text.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/emulated/emulated_device.hpp"
#include "device/hip/hip_device.hpp"

namespace tilewise {
namespace {

using MadeDevice = Result<std::unique_ptr<Device>>;

// "cuda:0" is the kind "cuda" and which of them, "0".
struct DeviceName {
    std::string_view text, kind;
    std::optional<std::string_view> which;
};

DeviceName parse_device_name(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return {text, text, std::nullopt};
    return {text, text.substr(0, colon), text.substr(colon + 1)};
}

Error no_device(const DeviceName& name);

// Which of a vendor's GPUs; the first unless said.
std::optional<int> ordinal_of(const DeviceName& name) {
    if (!name.which) return 0;
    const auto number = parse_integer(*name.which);
    constexpr std::int64_t kMostDevices = 1024;
    return number && *number >= 0 && *number < kMostDevices ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

// Only a CPU can be told to be less than it is.
MadeDevice of_arch(MadeDevice device, const std::string& wanted) {
    if (!device || wanted.empty() || (*device)->arch().name == wanted) return device;
    return Error{ErrorCode::usage, fmt::format("{} is {}, not {}: leave the arch out, which only a CPU can be told",
                                               (*device)->name(), (*device)->arch().name, wanted)};
}

MadeDevice make_cpu(const DeviceName& name, const ArchCatalog& archs, const DeviceOptions& options) {
    if (name.which) return no_device(name);
    auto arch = options.arch.empty() ? host_cpu_arch(archs) : archs.find(options.arch);
    if (!arch) return arch.error();
    if ((*arch)->is_gpu()) {
        return unsupported_error(
            fmt::format("{} is no CPU, which the device '{}' is. Run on its GPU ({}:0), or slowly on "
                        "none (emulated:{}); selecting a kernel for it needs no device",
                        (*arch)->name, name.text, name_of((*arch)->backend), (*arch)->name));
    }
    return make_cpu_device(**arch, options.threads);
}

// A GPU by its number, through its vendor's driver.
template <MadeDevice (*make)(const ArchCatalog&, int ordinal)>
MadeDevice make_gpu(const DeviceName& name, const ArchCatalog& archs, const DeviceOptions& options) {
    const auto ordinal = ordinal_of(name);
    return ordinal ? of_arch(make(archs, *ordinal), options.arch) : no_device(name);
}

MadeDevice make_emulated(const DeviceName& name, const ArchCatalog& archs, const DeviceOptions& options) {
    if (!name.which) return no_device(name);
    auto arch = archs.find(*name.which);
    if (!arch) return arch.error();
    return of_arch(make_emulated_device(**arch), options.arch);
}

// The devices of a backend have its name.
struct DeviceKind {
    std::string_view name;
    std::string_view listed;  // as an error lists those there are
    MadeDevice (*make)(const DeviceName&, const ArchCatalog&, const DeviceOptions&);
};
constexpr DeviceKind kDeviceKinds[] = {
    {name_of(Backend::cpu), "cpu", make_cpu},
    {name_of(Backend::cuda), "cuda:0, cuda:1, ...", make_gpu<make_cuda_device>},
    {name_of(Backend::hip), "hip:0, hip:1, ...", make_gpu<make_hip_device>},
    {"emulated", "emulated:ARCH", make_emulated},
};

Error no_device(const DeviceName& name) {
    std::string there;
    for (const DeviceKind& kind : kDeviceKinds) {
        const bool is_last = &kind == std::end(kDeviceKinds) - 1;
        there += fmt::format("{}{}", there.empty() ? "" : is_last ? " and " : ", ", kind.listed);
    }
    return {ErrorCode::device, fmt::format("no device '{}'; there are {}", name.text, there)};
}

}  // namespace

Result<std::unique_ptr<Device>> make_device(std::string_view name, const ArchCatalog& archs,
                                            const DeviceOptions& options) {
    const DeviceName parsed = parse_device_name(name);
    for (const DeviceKind& kind : kDeviceKinds) {
        if (kind.name == parsed.kind) return kind.make(parsed, archs, options);
    }
    return no_device(parsed);
}

}  // namespace tilewise
