// SPDX-License-Identifier: MIT
// The C functions on a context: opening a device, adding packs and tuning records to it, and its memory.
#include <fmt/core.h>

#include <cstdint>

#include "base/text.hpp"
#include "capi/archs.hpp"
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "device/cpu/thread_pool.hpp"

namespace tilewise::capi {
namespace {

Result<RuntimeOptions> read_context_options(const char* device, const tilewise_context_options* given) {
    if (!device) return usage_error("the device is NULL; need a name such as cpu");
    tilewise_context_options from{};
    if (given) {
        if (auto status = read_sized(given, "tilewise_context_options", from); !status) return status.error();
    }
    RuntimeOptions options;
    options.device = device;
    if (from.arch) options.device_options.arch = from.arch;
    options.device_options.threads = from.threads;
    for (const std::string_view pack : split(from.packs ? from.packs : "", ':')) {
        if (!pack.empty()) options.packs.emplace_back(pack);
    }
    return options;
}

Status create(const char* device, const tilewise_context_options* given, tilewise_context** out) {
    if (!out) return usage_error("the output pointer is NULL");
    *out = nullptr;
    if (!archs()) return archs().error();
    const auto options = read_context_options(device, given);
    if (!options) return options.error();
    auto runtime = open_runtime(*options, *archs());
    if (!runtime) return runtime.error();
    *out = open_handle(
        std::unique_ptr<tilewise_context>(new tilewise_context{std::make_shared<Runtime>(std::move(*runtime))}));
    return {};
}

std::string describe(const Runtime& runtime) {
    const Device& device = *runtime.device;
    return Json::object({{"device", device.name()},
                         {"identity", device.identity()},
                         {"arch", device.arch().name},
                         {"backend", name_of(device.arch().backend)},
                         {"threads", device.arch().is_gpu() ? Json() : Json(device.max_threads())},
                         {"cpus", usable_cpus()},
                         {"plan_cache", runtime.dispatcher->most_kept()},
                         {"shares_host_memory", device.shares_host_memory()},
                         {"tuning", runtime.tuning->path()}})
        .dump();
}

Status load_pack(Runtime& runtime, const char* path) {
    if (!path) return usage_error("the path of the pack is NULL");
    if (auto status = runtime.builder->add_pack(path); !status) return status;
    if (auto status = take_tuning_of_packs(runtime); !status) return status;
    runtime.dispatcher->forget_plans();
    return {};
}

Status load_tuning(Runtime& runtime, const char* path, std::int64_t* added) {
    if (!path) return usage_error("the path of the tuning records is NULL");
    const auto count = runtime.tuning->load(path);
    if (!count) return count.error();
    if (added) *added = static_cast<std::int64_t>(*count);
    runtime.dispatcher->forget_plans();
    return {};
}

Status load_models(Runtime& runtime, const char* directory) {
    if (!directory) return usage_error("the directory of the models is NULL");
    if (auto status = runtime.models->add_folder(directory, runtime.device->arch()); !status) return status;
    runtime.dispatcher->forget_plans();
    return {};
}

Status allocate(Device& device, std::size_t bytes, void** memory) {
    if (!memory) return usage_error("the output pointer is NULL");
    *memory = nullptr;
    auto made = device.allocate(bytes);
    if (!made) return made.error();
    *memory = *made;
    return {};
}

Status copy(Device& device, void* to, const void* from, std::size_t bytes, void* stream) {
    if (bytes == 0) return {};
    if (!to || !from) return usage_error("a copy needs two places; one of them is NULL");
    if (bytes > PTRDIFF_MAX) return usage_error(fmt::format("a copy of {} bytes: no memory has as many", bytes));
    const auto to_at = reinterpret_cast<std::uintptr_t>(to), from_at = reinterpret_cast<std::uintptr_t>(from);
    if (to_at - from_at < bytes || from_at - to_at < bytes) {
        return usage_error(fmt::format("a copy of {} bytes to a place {} bytes {} where they are: the two overlap",
                                       bytes, to_at > from_at ? to_at - from_at : from_at - to_at,
                                       to_at < from_at ? "before" : "after"));
    }
    return device.copy(to, from, bytes, stream);
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_context_create(const char* device, const tilewise_context_options* options,
                                        tilewise_context** context) {
    return tilewise::capi::guarded([&] { return tilewise::capi::create(device, options, context); });
}

void tilewise_context_destroy(tilewise_context* context) { tilewise::capi::close(context); }

tilewise_status tilewise_context_describe(const tilewise_context* context, char** json) {
    return tilewise::capi::give_text_of(context, json, [](tilewise_context& c) -> tilewise::Result<std::string> {
        return tilewise::capi::describe(*c.runtime);
    });
}

const char* tilewise_context_arch(const tilewise_context* context) {
    return tilewise::capi::value_of(context, "",
                                    [](tilewise_context& c) { return c.runtime->device->arch().name.c_str(); });
}

tilewise_status tilewise_load_pack(tilewise_context* context, const char* path) {
    return tilewise::capi::with(context,
                                [&](tilewise_context& c) { return tilewise::capi::load_pack(*c.runtime, path); });
}

tilewise_status tilewise_load_tuning(tilewise_context* context, const char* path, int64_t* added) {
    return tilewise::capi::with(
        context, [&](tilewise_context& c) { return tilewise::capi::load_tuning(*c.runtime, path, added); });
}

tilewise_status tilewise_load_models(tilewise_context* context, const char* directory) {
    return tilewise::capi::with(
        context, [&](tilewise_context& c) { return tilewise::capi::load_models(*c.runtime, directory); });
}

tilewise_status tilewise_allocate(tilewise_context* context, size_t bytes, void** memory) {
    return tilewise::capi::with(
        context, [&](tilewise_context& c) { return tilewise::capi::allocate(*c.runtime->device, bytes, memory); });
}

tilewise_status tilewise_release(tilewise_context* context, void* memory) {
    return tilewise::capi::with(context, [&](tilewise_context& c) -> tilewise::Status {
        if (memory) c.runtime->device->release(memory);
        return {};
    });
}

tilewise_status tilewise_copy(tilewise_context* context, void* to, const void* from, size_t bytes, void* stream) {
    return tilewise::capi::with(context, [&](tilewise_context& c) {
        return tilewise::capi::copy(*c.runtime->device, to, from, bytes, stream);
    });
}

tilewise_status tilewise_synchronize(tilewise_context* context, void* stream) {
    return tilewise::capi::with(context, [&](tilewise_context& c) { return c.runtime->device->synchronize(stream); });
}

}  // extern "C"
