// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <set>

#include "base/files.hpp"
#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "sweep/sweep_plan.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kMostConfigs = 100'000;

// The objects that come of taking one value of each list.
Result<std::vector<Json>> expanded(const Json& json) {
    std::vector<Json> objects = {Json(Json::Object())};
    for (const Json::Member& member : *json.object()) {
        const Json::Array one = {member.second};
        const Json::Array& values = member.second.array() ? *member.second.array() : one;
        std::vector<Json> next;
        if (objects.size() * values.size() > kMostConfigs) {
            return usage_error(fmt::format("the lists make more than {} configs; make them shorter", kMostConfigs));
        }
        for (const Json& object : objects) {
            for (const Json& value : values) {
                next.push_back(object);
                next.back().set(member.first, value);
            }
        }
        objects = std::move(next);
    }
    return objects;
}

Status add_configs(const Json& json, std::vector<KernelConfig>& configs) {
    if (const Json::Array* list = json.array()) {
        for (const Json& one : *list) {
            if (auto status = add_configs(one, configs); !status) return status;
        }
        return {};
    }
    if (json.string()) {
        auto config = parse_kernel_name(*json.string());
        if (!config) return Error{config.error().code, fmt::format("line {}: {}", json.line(), config.error().message)};
        configs.push_back(std::move(*config));
        return {};
    }
    if (!json.object()) {
        return usage_error(
            fmt::format("line {}: have a {}; need a kernel's name or its config", json.line(), json.kind()));
    }
    const auto objects = expanded(json);
    if (!objects) return Error{objects.error().code, fmt::format("line {}: {}", json.line(), objects.error().message)};
    for (const Json& object : *objects) {
        auto config = config_from_json(object);
        if (!config) return config.error();
        configs.push_back(std::move(*config));
    }
    return {};
}

}  // namespace

Result<std::vector<KernelConfig>> read_sweep_configs(const std::string& path) {
    const auto text = read_file(path);
    if (!text) return text.error();
    const auto json = Json::parse(*text);
    const auto in_file = [&](const Error& error) {
        return Error{error.code, fmt::format("{}: {}", path, error.message)};
    };
    if (!json) return in_file(json.error());
    std::vector<KernelConfig> configs;
    if (auto status = add_configs(*json, configs); !status) return in_file(status.error());
    std::set<std::string> seen;
    std::erase_if(configs, [&](const KernelConfig& config) { return !seen.insert(kernel_name(config)).second; });
    if (configs.empty()) return in_file(usage_error("there is no config in it"));
    return configs;
}

}  // namespace tilewise
