// SPDX-License-Identifier: MIT
// The C function that compiles kernels ahead, by name or config, into the cache. Needs no device and touches none.
#include <fmt/core.h>

#include <limits>

#include "build/builder.hpp"
#include "build/code_suffix.hpp"
#include "capi/archs.hpp"
#include "capi/call.hpp"
#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "config/rules.hpp"
#include "device/cpu/thread_pool.hpp"
#include "family/family.hpp"
#include "run/executable.hpp"

namespace tilewise::capi {
namespace {

// One config becomes this: a request that is built, or the reason why there is none.
struct Wanted {
    std::string kernel;
    Result<BuildRequest> request;
};

Result<BuildRequest> request_for(const KernelConfig& config) {
    const auto arch = archs()->find(config.arch);
    if (!arch) return arch.error();
    if (!is_valid(config, **arch)) {
        return Error{ErrorCode::check_failed, fmt::format("kernel {} breaks a rule of {}; tilewise check says which",
                                                          kernel_name(config), config.arch)};
    }
    return build_request(config, **arch, code_suffixes(**arch).front());
}

Wanted read_wanted(const Json& item) {
    const std::string text = item.string() ? *item.string() : item.dump();
    auto config = read_config(text);
    if (!config) return {text, config.error()};
    return {kernel_name(*config), request_for(*config)};
}

Json error_json(const Error& error) {
    return Json::object({{"code", static_cast<int>(error.code)}, {"message", error.message}});
}

Result<std::string> build(const char* configs_json, int jobs) {
    if (!configs_json) return usage_error("the list of configs is NULL");
    if (jobs < 0) return usage_error(fmt::format("jobs is {}; need 0 (one for each CPU) or more", jobs));
    if (!archs()) return archs().error();
    const auto json = Json::parse(configs_json);
    if (!json) return json.error();
    if (!json->array()) return usage_error("the configs are no list; need [\"name\", {config}, ...]");
    auto settings = build_settings();
    if (!settings) return settings.error();

    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::vector<Wanted> wanted;
    std::vector<BuildRequest> requests;
    std::vector<std::size_t> place;  // of each that is wanted, among the requests
    for (const Json& item : *json->array()) {
        wanted.push_back(read_wanted(item));
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
