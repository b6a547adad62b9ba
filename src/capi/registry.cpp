// SPDX-License-Identifier: MIT
// The C functions on registries.
#include "registry/registry.hpp"

#include <fmt/core.h>

#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "capi/query.hpp"
#include "config/config_name.hpp"
#include "config/rules.hpp"
#include "family/family.hpp"

namespace tilewise::capi {
namespace {

Status create_registry(const char* name, tilewise_registry** out) {
    if (!out) return usage_error("the output pointer is NULL");
    *out = nullptr;
    *out = open_handle(std::unique_ptr<tilewise_registry>(new tilewise_registry{Registry(name ? name : "default")}));
    return {};
}

void count(std::size_t value, std::int64_t* added) {
    if (added) *added = static_cast<std::int64_t>(value);
}

Status add_rule_set(Registry& registry, const char* query_json, std::int64_t* added) {
    const auto query = read_query(query_json, true);
    if (!query) return query.error();
    auto found = list(*query);
    if (!found) return found.error();
    count(registry.add(std::move(*found)), added);
    return {};
}

// Kernels are planned with as soon as they are in a registry, which only valid ones stand.
// Answers whether there is code for it: that is this library's to say, not a file's.
Result<bool> check_kernel(const KernelConfig& config) {
    const auto arch = read_arch(config.arch.c_str());
    if (!arch) return arch.error();
    const auto broken = check_config(config, **arch);
    if (broken.empty()) return has_code(config, **arch);
    return Error{ErrorCode::check_failed,
                 fmt::format("the config {} is not valid on {}: rule {}: have {}; need {}; tilewise_correct may help",
                             kernel_name(config), (*arch)->name, broken[0].rule, broken[0].have, broken[0].need)};
}

Status add_config(Registry& registry, const char* text, const char* priority_name, std::int64_t* added) {
    auto config = read_config_argument(text);
    if (!config) return config.error();
    const auto priority = parse_enum<Priority>(priority_name ? priority_name : name_of(Priority::normal));
    if (!priority) return priority.error();
    const auto available = check_kernel(*config);
    if (!available) return available.error();
    count(registry.add(make_kernel(std::move(*config), *priority, *available)), added);
    return {};
}

Status merge(Registry& registry, const tilewise_registry* other, std::int64_t* added) {
    const Pinned<tilewise_registry> from(other);
    if (!from) return not_open(other);
    count(registry.merge(from->kernels), added);
    return {};
}

Status import(Registry& registry, const char* text, std::int64_t* added) {
    if (!text) return usage_error("the JSON is NULL");
    const auto json = Json::parse(text);
    if (!json) return json.error();
    Registry read;
    if (const auto taken = read.import_json(*json); !taken) return taken.error();
    std::vector<Kernel> kernels;
    const auto list = read.kernels();
    for (const KernelPtr& kernel : *list) {
        const auto available = check_kernel(kernel->config);
        if (!available) return available.error();
        kernels.push_back(*kernel);
        kernels.back().available = *available;
    }
    count(registry.add(std::move(kernels)), added);
    return {};
}

Result<std::string> name_at(const Registry& registry, std::int64_t index) {
    const auto list = registry.kernels();
    if (index < 0 || static_cast<std::size_t>(index) >= list->size()) {
        return usage_error(fmt::format("index {} is outside the registry, which has {} kernels", index, list->size()));
    }
    return (*list)[static_cast<std::size_t>(index)]->name;
}

Result<std::string> find(const Registry& registry, const char* name_or_id) {
    if (!name_or_id) return usage_error("the name is NULL");
    const KernelPtr kernel = registry.find(name_or_id);
    if (!kernel) {
        return unsupported_error(fmt::format("the registry '{}' has no kernel '{}'", registry.name(), name_or_id));
    }
    return kernel_to_json(*kernel).dump();
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_registry_create(const char* name, tilewise_registry** registry) {
    return tilewise::capi::guarded([&] { return tilewise::capi::create_registry(name, registry); });
}

void tilewise_registry_destroy(tilewise_registry* registry) { tilewise::capi::close(registry); }

tilewise_status tilewise_registry_add_rule_set(tilewise_registry* registry, const char* query_json, int64_t* added) {
    return tilewise::capi::with(
        registry, [&](tilewise_registry& r) { return tilewise::capi::add_rule_set(r.kernels, query_json, added); });
}

tilewise_status tilewise_registry_add(tilewise_registry* registry, const char* config, const char* priority,
                                      int64_t* added) {
    return tilewise::capi::with(
        registry, [&](tilewise_registry& r) { return tilewise::capi::add_config(r.kernels, config, priority, added); });
}

tilewise_status tilewise_registry_merge(tilewise_registry* registry, const tilewise_registry* other, int64_t* added) {
    return tilewise::capi::with(registry,
                                [&](tilewise_registry& r) { return tilewise::capi::merge(r.kernels, other, added); });
}

tilewise_status tilewise_registry_import(tilewise_registry* registry, const char* json, int64_t* added) {
    return tilewise::capi::with(registry,
                                [&](tilewise_registry& r) { return tilewise::capi::import(r.kernels, json, added); });
}

tilewise_status tilewise_registry_export(const tilewise_registry* registry, int statistics, char** json) {
    return tilewise::capi::give_text_of(registry, json, [&](tilewise_registry& r) -> tilewise::Result<std::string> {
        return r.kernels.to_json(statistics != 0).dump();
    });
}

tilewise_status tilewise_registry_clear(tilewise_registry* registry) {
    return tilewise::capi::with(registry, [&](tilewise_registry& r) -> tilewise::Status {
        r.kernels.clear();
        return {};
    });
}

int64_t tilewise_registry_size(const tilewise_registry* registry) {
    return tilewise::capi::value_of(registry, int64_t{0},
                                    [](tilewise_registry& r) { return static_cast<int64_t>(r.kernels.size()); });
}

tilewise_status tilewise_registry_name_at(const tilewise_registry* registry, int64_t index, char** name) {
    return tilewise::capi::give_text_of(
        registry, name, [&](tilewise_registry& r) { return tilewise::capi::name_at(r.kernels, index); });
}

tilewise_status tilewise_registry_find(const tilewise_registry* registry, const char* name_or_id, char** json) {
    return tilewise::capi::give_text_of(
        registry, json, [&](tilewise_registry& r) { return tilewise::capi::find(r.kernels, name_or_id); });
}

}  // extern "C"
