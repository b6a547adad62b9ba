// SPDX-License-Identifier: MIT
// The C functions on extensions: a client's own C++, compiled once into the cache of kernels and checked like them. The package
// for PyTorch has its ops compiled so, against the torch that is installed.
#include <dlfcn.h>
#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/json.hpp"
#include "base/json_object.hpp"
#include "build/build_request.hpp"
#include "build/build_settings.hpp"
#include "build/builder.hpp"
#include "build/built_kernel.hpp"
#include "build/checked_code.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "build/kernel_cache.hpp"
#include "capi/call.hpp"

namespace tilewise::capi {
namespace {

// Headers of a framework take their time: so many times the limit of a kernel.
constexpr int kLimitFactor = 10;

struct Extension {
    BuildRequest request;
    BuildSettings settings;
    std::string digest;
};

Result<Extension> read_extension(const char* request_json) {
    if (!request_json) return usage_error("the request is NULL");
    const auto json = Json::parse(request_json);
    if (!json) return json.error();
    JsonObject object(*json, "request");
    Extension extension;
    BuildRequest& request = extension.request;
    request.name = object.text("name");
    request.source = object.text("source");
    request.flags = object.texts_or_none("flags");
    request.arch = "host";
    request.suffix = kExtension;
    if (auto status = object.finish(); !status) return status.error();
    auto settings = build_settings();
    if (!settings) return settings.error();
    extension.settings = std::move(*settings);
    extension.settings.compile_limit *= kLimitFactor;
    auto digest = digest_of(request);
    if (!digest) return digest.error();
    extension.digest = std::move(*digest);
    return extension;
}

Error extension_error(std::string message) { return {ErrorCode::toolchain, std::move(message)}; }

// Whether compiling it makes sense: there is a compiler, and it has not failed before.
Status check_promising(const Extension& extension, const KernelCache& cache) {
    if (const auto failed = cache.failed_at(extension.digest)) {
        return extension_error(
            fmt::format("{} could not be compiled before; command and log are in {}", extension.request.name, *failed));
    }
    const auto compiler = find_toolchain(kExtension, extension.settings);
    return compiler ? Status() : compiler.error();
}

Status build_extension(const char* request_json) {
    const auto extension = read_extension(request_json);
    if (!extension) return extension.error();
    const auto built = Builder(extension->settings).build(extension->request);
    if (!built) return built.error();
    // A file that goes with the builder is no use to the next process.
    return built->origin == KernelOrigin::private_ ? extension_error(built->note) : Status();
}

Result<void*> load_extension(const char* request_json) {
    const auto extension = read_extension(request_json);
    if (!extension) return extension.error();
    KernelCache cache(extension->settings.cache_dir);
    if (auto status = cache.check(extension->digest); !status) return status.error();
    auto entry = cache.find(extension->digest);
    if (!entry) {
        if (auto status = check_promising(*extension, cache); !status) return status.error();
        return Error{ErrorCode::check_failed, fmt::format("{} is not compiled yet", extension->request.name)};
    }
    const auto checked = CheckedCode::open(
        {entry->path, extension->digest, KernelOrigin::cache, /*note=*/{}, std::move(entry->manifest)});
    if (!checked) return checked.error();
    void* const library = dlopen(checked->path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return extension_error(fmt::format("cannot load {}: {}", extension->request.name, dlerror()));
    return library;
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_build_extension(const char* request_json) {
    return tilewise::capi::guarded([&] { return tilewise::capi::build_extension(request_json); });
}

tilewise_status tilewise_load_extension(const char* request_json, void** library) {
    return tilewise::capi::guarded([&]() -> tilewise::Status {
        if (!library) return tilewise::usage_error("the output pointer is NULL");
        *library = nullptr;
        const auto loaded = tilewise::capi::load_extension(request_json);
        if (!loaded) return loaded.error();
        *library = *loaded;
        return {};
    });
}

}  // extern "C"
