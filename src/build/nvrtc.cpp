// SPDX-License-Identifier: MIT
#include "build/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "base/text.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

constexpr int kOldestMajor = 12;          // knows C++20 and sm_90a
constexpr int kDriverVersionUnit = 1000;  // 13000 is CUDA 13.0

int minor_of(int driver_version) { return driver_version % kDriverVersionUnit / 10; }

template <class Function>
bool get(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

// NVRTC asks the loader for this by its name alone, which does not find it beside itself in a Python package; once it
// is loaded, the name is enough. Where it is elsewhere, NVRTC's own way must do.
void load_builtins(const std::string& nvrtc_path, int major, int minor) {
    const std::string folder = nvrtc_path.substr(0, nvrtc_path.rfind('/') + 1);
    const std::string path = fmt::format("{}libnvrtc-builtins.so.{}.{}", folder, major, minor);
    dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

// Its path as the loader found it, for who comes later and for people.
std::string path_of(const Nvrtc& nvrtc, const std::string& place) {
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<void*>(nvrtc.version), &info) != 0 && info.dli_fname;
    return known ? info.dli_fname : place;
}

// The code is for this driver, and of this kind.
struct Target {
    std::optional<int> driver_version;
    std::string_view suffix;
};

Result<Toolchain> identify(const Nvrtc& nvrtc, const std::string& path, const Target& target) {
    int major = 0, minor = 0;
    if (nvrtc.version(&major, &minor) != NvrtcResult::success) {
        return toolchain_error(fmt::format("{} does not tell its version", path));
    }
    if (major < kOldestMajor) {
        return toolchain_error(fmt::format("{} is {}.{}; need {}.0 or newer", path, major, minor, kOldestMajor));
    }
    if (target.driver_version && !driver_loads(target.suffix, major, minor, *target.driver_version)) {
        return toolchain_error(fmt::format("{} is {}.{}, but the driver here loads {} of CUDA {}.{} at most", path,
                                           major, minor, target.suffix == kPtx ? "PTX" : "kernels",
                                           *target.driver_version / kDriverVersionUnit,
                                           minor_of(*target.driver_version)));
    }
    load_builtins(path, major, minor);
    return Toolchain{path, "nvrtc", fmt::format("{}.{}", major, minor)};
}

Result<Toolchain> try_place(const std::string& place, const Target& target) {
    const auto nvrtc = load_nvrtc(place);
    if (!nvrtc) return nvrtc.error();
    auto found = identify(*nvrtc, path_of(*nvrtc, place), target);
    if (!found) dlclose(nvrtc->library);
    return found;
}

Result<Toolchain> find_any(const Target& target) {
    std::string refused;
    for (const std::string& place : nvrtc_places()) {
        auto found = try_place(place, target);
        if (found) return found;
        refused += fmt::format("; {}", found.error().message);
    }
    return toolchain_error(
        fmt::format("no NVRTC {} or newer on this machine (looked {}){}", kOldestMajor, kNvrtcPlaces, refused));
}

}  // namespace

Result<Nvrtc> load_nvrtc(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* why = dlerror();
        return toolchain_error(why ? why : fmt::format("cannot load {}", path));
    }
    Nvrtc nvrtc{};
    nvrtc.library = library;
    const bool whole =
        get(library, "nvrtcVersion", nvrtc.version) && get(library, "nvrtcGetErrorString", nvrtc.error_text) &&
        get(library, "nvrtcCreateProgram", nvrtc.create) && get(library, "nvrtcDestroyProgram", nvrtc.destroy) &&
        get(library, "nvrtcCompileProgram", nvrtc.compile) && get(library, "nvrtcGetProgramLogSize", nvrtc.log_size) &&
        get(library, "nvrtcGetProgramLog", nvrtc.log) && get(library, "nvrtcGetCUBINSize", nvrtc.cubin_size) &&
        get(library, "nvrtcGetCUBIN", nvrtc.cubin) && get(library, "nvrtcGetPTXSize", nvrtc.ptx_size) &&
        get(library, "nvrtcGetPTX", nvrtc.ptx);
    get(library, "nvrtcSetFlowCallback", nvrtc.set_callback);
    if (!whole) {
        dlclose(library);
        return toolchain_error(fmt::format("{} is no NVRTC that builds cubins", path));
    }
    return nvrtc;
}

std::optional<std::pair<int, int>> nvrtc_version(std::string_view text) {
    const auto parts = split(text, '.');
    const auto major = parse_integer(parts[0]);
    const auto minor = parts.size() > 1 ? parse_integer(parts[1]) : std::nullopt;
    constexpr std::int64_t kMost = 1000;  // of a version that exists
    if (!major || !minor || std::min(*major, *minor) < 0 || std::max(*major, *minor) > kMost) return std::nullopt;
    return std::pair(static_cast<int>(*major), static_cast<int>(*minor));
}

bool driver_loads(std::string_view suffix, int major, int minor, int driver_version) {
    const int driver_major = driver_version / kDriverVersionUnit;
    if (major != driver_major) return major < driver_major;
    return suffix != kPtx || minor <= minor_of(driver_version);
}

Result<Toolchain> find_nvrtc(const std::string& wanted, std::optional<int> driver_version, std::string_view suffix) {
    static std::mutex mutex;
    static std::map<std::tuple<std::string, std::optional<int>, std::string>, Toolchain> known;
    const std::tuple key(wanted, driver_version, std::string(suffix));
    const Target target{driver_version, suffix};
    {
        const std::scoped_lock lock(mutex);
        if (const auto at = known.find(key); at != known.end()) return at->second;
    }
    // Outside the lock, and a failure is not remembered: as for the host compiler.
    auto found = wanted.empty() ? find_any(target) : try_place(wanted, target);
    if (!found && !wanted.empty()) {
        return toolchain_error(fmt::format("TILEWISE_NVRTC is '{}': {}", wanted, found.error().message));
    }
    if (found) {
        const std::scoped_lock lock(mutex);
        known.emplace(key, *found);
    }
    return found;
}

}  // namespace tilewise
