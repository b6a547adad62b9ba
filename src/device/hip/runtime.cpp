// SPDX-License-Identifier: MIT
#include "device/hip/runtime.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "device/device_error.hpp"
#include "device/gpu/start_once.hpp"

namespace tilewise::hip_runtime {
namespace {

constexpr int kOldestMajor = 6;
constexpr std::array<const char*, 2> kLibraries = {"libamdhip64.so.7", "libamdhip64.so.6"};
constexpr const char* kTooOld = "libamdhip64.so.5";
constexpr const char* kUnversioned = "libamdhip64.so";  // as libraries that bring their own call it

int major_of(int version) { return version / 10'000'000; }

Error too_old(const std::string& file) {
    return device_error(
        fmt::format("'{}' is of ROCm 5, which loads code objects of version 4 only; need ROCm 6 or newer", file));
}

struct Library {
    void* handle;
    std::string file;
};

Result<Library> open_named(const char* file) {
    if (void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return Library{handle, file};
    return device_error(fmt::format("cannot load the HIP runtime that TILEWISE_HIP names: {}", dlerror()));
}

// Two runtimes in a process know nothing of each other's memory and streams, so that one that is there is taken.
Result<Library> open_library() {
    if (const char* named = secure_getenv("TILEWISE_HIP")) return open_named(named);
    for (const char* file : {kLibraries[0], kLibraries[1], kTooOld, kUnversioned}) {
        void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (handle) return Library{handle, file};
    }
    std::string why;
    for (const char* file : kLibraries) {
        if (void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return Library{handle, file};
        why += fmt::format("{}{}", why.empty() ? "" : "; ", dlerror());
    }
    if (dlopen(kTooOld, RTLD_LAZY | RTLD_LOCAL)) return too_old(kTooOld);
    return device_error(fmt::format(
        "no HIP runtime on this machine: {}. ROCm 6 or newer has it; TILEWISE_HIP names another file", why));
}

// No GPU is news for whoever wants one, not for whoever lists them.
Status start(Runtime& runtime) {
    const auto started = runtime.init(0);
    if (started == kNoDevice || started == kInvalidDevice) return {};
    if (auto status = runtime.check(started, "Init"); !status) return status;
    const auto counted = runtime.device_get_count(&runtime.devices);
    if (counted != kNoDevice) return runtime.check(counted, "GetDeviceCount");
    runtime.devices = 0;
    return {};
}

Result<Runtime> load() {
    const auto library = open_library();
    if (!library) return library.error();
    Runtime runtime;
    runtime.file = library->file;
// NOLINTBEGIN(bugprone-macro-parentheses): a result and a list of parameters cannot be in any
#define X(result, name, symbol, parameters) \
    runtime.name = reinterpret_cast<result(*) parameters>(dlsym(library->handle, symbol));
    TILEWISE_HIP_OPTIONAL_FUNCTIONS(X)
    TILEWISE_HIP_FUNCTIONS(X)
#undef X
#define X(result, name, symbol, parameters)                                                             \
    if (!runtime.name) {                                                                                \
        return device_error(fmt::format("'{}' has no {}; need ROCm 6 or newer", runtime.file, symbol)); \
    }
    TILEWISE_HIP_FUNCTIONS(X)
#undef X
    // NOLINTEND(bugprone-macro-parentheses)
    if (runtime.runtime_get_version(&runtime.version) != kSuccess) runtime.version = 0;
    if (runtime.file == kTooOld || (runtime.version > 0 && major_of(runtime.version) < kOldestMajor)) {
        return too_old(runtime.file);
    }
    if (auto status = start(runtime); !status) return status.error();
    return runtime;
}

}  // namespace

std::string Runtime::description() const {
    return fmt::format("HIP {}.{}", major_of(version), version / 100'000 % 100);
}

HipResult Runtime::copy_box(const GpuBox& box, HipStream stream) const {
    const auto side = [&](const GpuBox::Side& of) {
        return HipMemcpy3D::Side{nullptr, {}, {of.memory, of.pitch, box.width_bytes, of.height}};
    };
    const HipMemcpy3D copy = {side(box.from), side(box.to), box.width_bytes,
                              box.height,     box.depth,    kCopyDeviceToDevice};
    return memcpy_3d_async(&copy, stream);
}

Result<std::string> Runtime::arch_name(int device) const {
    const auto ask = get_properties ? get_properties : get_old_properties;
    if (!ask) return device_error(fmt::format("'{}' does not say what its GPUs are; need ROCm 6 or newer", file));
    std::vector<char> properties(kPropertiesBytes);
    if (auto status = check(ask(properties.data(), device), "GetDeviceProperties"); !status) return status.error();
    const char* const name = properties.data() + (get_properties ? kArchNameAt : kOldArchNameAt);
    const std::string_view text(name, strnlen(name, kArchNameBytes));
    return std::string(text.substr(0, text.find(':')));
}

std::string Runtime::reason(HipResult code) const {
    const char *name = get_error_name(code), *text = get_error_string(code);
    return fmt::format("{}: {}", name ? name : std::to_string(code), text ? text : "");
}

Result<const Runtime*> load_runtime() { return start_once(load); }

}  // namespace tilewise::hip_runtime
