// SPDX-License-Identifier: MIT
// The C function that compiles kernels ahead, by name or config, into the cache. Needs no device and touches none.
#include <fmt/core.h>

#include <limits>

#include "base/json_object.hpp"
#include "build/builder.hpp"
#include "build/code_suffix.hpp"
#include "capi/archs.hpp"
#include "capi/call.hpp"
#include "config/config_name.hpp"
#include "config/rules.hpp"
#include "device/cpu/thread_pool.hpp"
#include "family/family.hpp"
#include "registry/read_kernel.hpp"
#include "run/executable.hpp"

namespace tilewise::capi {
namespace {

// One config becomes this: a request that is built, or the reason why there is none.
struct Wanted {
    std::string kernel;
    Result<BuildRequest> request;
};

// The list of kernels to build, and whether an emulated GPU is to run it.
struct Order {
    Json::Array kernels;
    bool emulated = false;
};

Result<Order> read_order(const char* text) {
    auto json = Json::parse(text);
    if (!json) return json.error();
    if (json->array()) return Order{*json->array()};
    JsonObject from(*json, "order");
    const Json* kernels = from.child_or_null("kernels");
    if (!kernels || !kernels->array()) {
        return usage_error("the configs are no list; need [\"name\", {config}, ...] or {\"kernels\": [...]}");
    }
    Order order{*kernels->array()};
    order.emulated = from.flag_or("emulated", false);
    if (auto status = from.finish(); !status) return status.error();
    return order;
}

Result<std::string_view> suffix_for(const ArchSpec& arch, bool emulated) {
    if (!emulated) return code_suffixes(arch).front();
    if (arch.is_gpu()) return kEmulatedCode;
    return usage_error(
        fmt::format("there is no emulation of {}; kernels of GPUs, such as sm_90a, run emulated", arch.name));
}

Result<BuildRequest> request_for(const KernelConfig& config, bool emulated) {
    const auto arch = archs()->find(config.arch);
    if (!arch) return arch.error();
    if (!is_valid(config, **arch)) {
        return Error{ErrorCode::check_failed, fmt::format("kernel {} breaks a rule of {}; tilewise check says which",
                                                          kernel_name(config), config.arch)};
    }
    const auto suffix = suffix_for(**arch, emulated);
    if (!suffix) return suffix.error();
    return build_request(config, **arch, *suffix);
}

Wanted read_wanted(const Json& item, bool emulated) {
    const std::string text = item.string() ? *item.string() : item.dump();
    auto config = read_kernel(text, *archs());
    if (!config) return {text, config.error()};
    return {kernel_name(*config), request_for(*config, emulated)};
}

Json error_json(const Error& error) {
    return Json::object({{"code", static_cast<int>(error.code)}, {"message", error.message}});
}

Result<std::string> build(const char* configs_json, int jobs) {
    if (!configs_json) return usage_error("the list of configs is NULL");
    if (jobs < 0) return usage_error(fmt::format("jobs is {}; need 0 (one for each CPU) or more", jobs));
    if (!archs()) return archs().error();
    const auto order = read_order(configs_json);
    if (!order) return order.error();
    auto settings = build_settings();
    if (!settings) return settings.error();

    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::vector<Wanted> wanted;
    std::vector<BuildRequest> requests;
    std::vector<std::size_t> place;  // of each that is wanted, among the requests
    for (const Json& item : order->kernels) {
        wanted.push_back(read_wanted(item, order->emulated));
        place.push_back(wanted.back().request ? requests.size() : kNone);
        if (wanted.back().request) requests.push_back(*wanted.back().request);
    }
    Builder builder(std::move(*settings));
    if (!builder.pack_errors().empty()) return builder.pack_errors().front();
    const auto built = builder.build_all(requests, jobs == 0 ? usable_cpus() : jobs);

    Json::Array list;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        Json item = Json::object({{"kernel", wanted[i].kernel}});
        if (place[i] == kNone) {
            item.set("error", error_json(wanted[i].request.error()));
        } else if (const auto& kernel = built[place[i]]; !kernel) {
            item.set("error", error_json(kernel.error()));
        } else {
            item.set("path", kernel->path);
            item.set("digest", kernel->digest);
            item.set("origin", name_of(kernel->origin));
            item.set("note", kernel->note);
        }
        list.push_back(std::move(item));
    }
    return Json::object({{"kernels", Json(std::move(list))}}).dump();
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_build(const char* configs_json, int32_t jobs, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::build(configs_json, jobs); });
}

}  // extern "C"
