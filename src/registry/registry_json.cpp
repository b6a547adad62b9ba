// SPDX-License-Identifier: MIT
// A registry as JSON: what it holds, and how many of each kind.
#include <fmt/core.h>

#include <map>

#include "base/version.hpp"
#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "registry/registry.hpp"

namespace tilewise {
namespace {

// How many kernels have each value of each leading field but the shapes, which are nearly all different.
Json statistics(const KernelList& kernels) {
    Json result{Json::Object{}};
    for (const ConfigField& field : config_fields()) {
        if (field.role != Role::lead || field.type == "Shape3") continue;
        std::map<std::string, std::int64_t> counts;
        for (const KernelPtr& kernel : kernels) {
            std::string value;
            field.print(kernel->config, value);
            ++counts[value];
        }
        Json by_value{Json::Object{}};
        for (const auto& [value, count] : counts) by_value.set(value, Json(count));
        result.set(fmt::format("by_{}", field.name), std::move(by_value));
    }
    return result;
}

Result<Kernel> kernel_from_json(const Json& json) {
    const Json* config_json = json.find("config");
    if (!config_json) return usage_error(fmt::format("line {}: a kernel needs a \"config\"", json.line()));
    auto config = config_from_json(*config_json);
    if (!config) return config.error();
    Kernel kernel = make_kernel(std::move(*config));
    const Json* name = json.find("name");
    if (name && (!name->string() || *name->string() != kernel.name)) {
        return usage_error(
            fmt::format("line {}: the name is not that of the config, which is {}", name->line(), kernel.name));
    }
    const Json* id = json.find("id");
    if (id && (!id->string() || *id->string() != kernel.id)) {
        return usage_error(
            fmt::format("line {}: the id is not that of the config, which is {}", id->line(), kernel.id));
    }
    const std::string_view family_name = name_of(family_of(kernel.config));
    const Json* family = json.find("family");
    if (family && (!family->string() || *family->string() != family_name)) {
        return usage_error(
            fmt::format("line {}: the family is not that of the config, which is {}", family->line(), family_name));
    }
    if (const Json* priority = json.find("priority")) {
        auto value = parse_enum<Priority>(priority->string() ? *priority->string() : std::string(priority->kind()));
        if (!value) return usage_error(fmt::format("line {}: {}", priority->line(), value.error().message));
        kernel.priority = *value;
    }
    if (const Json* available = json.find("available")) {
        if (!available->boolean())
            return usage_error(fmt::format("line {}: available is true or false", available->line()));
        kernel.available = *available->boolean();
    }
    return kernel;
}

}  // namespace

Json kernel_to_json(const Kernel& kernel) {
    return Json::object({{"name", kernel.name},
                         {"id", kernel.id},
                         {"family", name_of(family_of(kernel.config))},
                         {"priority", name_of(kernel.priority)},
                         {"available", kernel.available},
                         {"config", config_to_json(kernel.config)}});
}

Json kernels_to_json(std::span<const Kernel> kernels) {
    Json::Array items;
    items.reserve(kernels.size());
    for (const Kernel& kernel : kernels) items.push_back(kernel_to_json(kernel));
    return Json::object({{"count", kernels.size()}, {"kernels", Json(std::move(items))}});
}

Json Registry::to_json(bool with_statistics) const {
    const auto list = kernels();
    Json::Array items;
    for (const KernelPtr& kernel : *list) items.push_back(kernel_to_json(*kernel));
    Json json = Json::object({{"registry", name_}, {"version", version()}, {"count", list->size()}});
    if (with_statistics) json.set("statistics", statistics(*list));
    json.set("kernels", Json(std::move(items)));
    return json;
}

Result<std::size_t> Registry::import_json(const Json& json) {
    const Json* list = json.find("kernels");
    if (!list || !list->array()) return usage_error("an exported registry is an object with an array \"kernels\"");
    std::vector<Kernel> kernels;
    for (const Json& item : *list->array()) {
        auto kernel = kernel_from_json(item);
        if (!kernel) return kernel.error();
        kernels.push_back(std::move(*kernel));
    }
    return add(std::move(kernels));
}

}  // namespace tilewise
