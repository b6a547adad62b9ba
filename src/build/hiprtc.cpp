// SPDX-License-Identifier: MIT
#include "build/hiprtc.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "base/text.hpp"
#include "base/trust.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

constexpr int kOldestRocm = 6;
constexpr std::array<const char*, 2> kHiprtcNames = {"libhiprtc.so.7", "libhiprtc.so.6"};
constexpr const char* kHiprtcOfOthers = "libhiprtc.so";  // as libraries that bring their own call it

// The file as the loader found it, without links: "/opt/rocm-7.0.0/lib/libhiprtc.so.7.0.51831".
std::string file_of(const Hiprtc& hiprtc, const std::string& name) {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(hiprtc.create), &info) == 0 || !info.dli_fname) return name;
    std::error_code error;
    const auto path = std::filesystem::canonical(info.dli_fname, error);
    return error ? info.dli_fname : path.string();
}

// "7.0.51831" of such a file; empty where its name has no number.
std::string version_in(const std::string& file) {
    constexpr std::string_view kMark = ".so.";
    const std::size_t name = file.rfind('/') + 1;
    const std::size_t at = file.find(kMark, name);
    return at == std::string::npos ? std::string() : file.substr(at + kMark.size());
}

Result<Toolchain> try_library(const std::string& name) {
    const auto hiprtc = load_hiprtc(name);
    if (!hiprtc) return hiprtc.error();
    const std::string file = file_of(*hiprtc, name), version = version_in(file);
    const auto major = parse_integer(split(version, '.')[0]);
    if (major && *major < kOldestRocm) {
        dlclose(hiprtc->library);
        return toolchain_error(fmt::format("{} is of ROCm {}; need ROCm {} or newer", file, *major, kOldestRocm));
    }
    return Toolchain{file, std::string(kHiprtc), version.empty() ? "of unknown version" : version};
}

}  // namespace

Result<Hiprtc> load_hiprtc(const std::string& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* why = dlerror();
        return toolchain_error(why ? why : fmt::format("cannot load {}", path));
    }
    Hiprtc hiprtc{};
    hiprtc.library = library;
    const auto get = [&]<class Function>(const char* name, Function*& function) {
        function = reinterpret_cast<Function*>(dlsym(library, name));
        return function != nullptr;
    };
    const bool whole = get("hiprtcGetErrorString", hiprtc.error_text) && get("hiprtcCreateProgram", hiprtc.create) &&
                       get("hiprtcDestroyProgram", hiprtc.destroy) && get("hiprtcCompileProgram", hiprtc.compile) &&
                       get("hiprtcGetProgramLogSize", hiprtc.log_size) && get("hiprtcGetProgramLog", hiprtc.log) &&
                       get("hiprtcGetCodeSize", hiprtc.code_size) && get("hiprtcGetCode", hiprtc.code);
    if (!whole) {
        dlclose(library);
        return toolchain_error(fmt::format("{} is no hiprtc", path));
    }
    return hiprtc;
}

Result<Toolchain> find_hiprtc(const std::string& wanted) {
    if (has_raised_rights()) return toolchain_error("hiprtc is not used by a program with raised rights");
    if (!wanted.empty()) {
        auto found = try_library(wanted);
        if (found) return found;
        return toolchain_error(fmt::format("TILEWISE_HIPRTC is '{}': {}", wanted, found.error().message));
    }
    for (const char* name : {kHiprtcNames[0], kHiprtcNames[1], kHiprtcOfOthers}) {
        void* const loaded = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (!loaded) continue;
        auto found = try_library(name);
        dlclose(loaded);
        if (found) return found;
    }
    std::string why;
    for (const char* name : kHiprtcNames) {
        auto found = try_library(name);
        if (found) return found;
        why += fmt::format("{}{}", why.empty() ? "" : "; ", found.error().message);
    }
    return toolchain_error(fmt::format("no hiprtc: {}", why));
}

}  // namespace tilewise
