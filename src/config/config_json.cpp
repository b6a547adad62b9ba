// SPDX-License-Identifier: MIT
#include "config/config_json.hpp"

#include <fmt/core.h>

#include "base/text.hpp"
#include "config/config_name.hpp"

namespace tilewise {
namespace {

// A GEMM has no spatial dimensions to state.
bool is_required(const ConfigField& field, Op op) {
    return field.role == Role::lead && !(field.name == "ndim" && op == Op::gemm);
}

std::string value_text(const Json& value) {
    if (const auto* text = value.string()) return *text;
    if (const auto* number = value.integer()) return fmt::format("{}", *number);
    if (const auto* flag = value.boolean()) return *flag ? "true" : "false";
    return {};
}

bool has_right_kind(const ConfigField& field, const Json& value) {
    if (field.type == "bool") return value.boolean() != nullptr;
    if (field.type == "int") return value.integer() != nullptr;
    return value.string() != nullptr;
}

Error in_field(const ConfigField& field, const Json& value, std::string_view what) {
    return usage_error(fmt::format("config field '{}' (line {}): {}", field.name, value.line(), what));
}

}  // namespace

Json config_to_json(const KernelConfig& c) {
    Json json{Json::Object{}};
    for (const ConfigField& field : config_fields()) {
        if (is_required(field, c.op) || !field.is_default(c)) json.set(std::string(field.name), field.to_json(c));
    }
    return json;
}

Result<KernelConfig> config_from_json(const Json& json) {
    const auto* members = json.object();
    if (!members) return usage_error(fmt::format("a config in JSON is an object, not {}", json.kind()));
    for (const auto& [key, value] : *members) {
        if (find_field(key)) continue;
        std::vector<std::string_view> known;
        for (const ConfigField& field : config_fields()) known.push_back(field.name);
        return usage_error(fmt::format("{} (line {})", unknown_word("config field", key, known), value.line()));
    }
    KernelConfig c;
    for (const ConfigField& field : config_fields()) {
        const Json* value = json.find(field.name);
        if (!value) {
            if (is_required(field, c.op)) {
                return usage_error(fmt::format("config field '{}' is missing: {}", field.name, field.help));
            }
            field.reset(c);
            continue;
        }
        if (!has_right_kind(field, *value)) {
            const std::string_view need = field.type == "bool"  ? "true or false"
                                          : field.type == "int" ? "a whole number"
                                                                : "a string";
            return in_field(field, *value, fmt::format("takes {}, not {}", need, value->kind()));
        }
        if (auto status = field.parse(c, value_text(*value)); !status) {
            return in_field(field, *value, status.error().message);
        }
    }
    return c;
}

Result<KernelConfig> read_config(std::string_view name_or_json) {
    const std::string_view word = trim(name_or_json);
    // No JSON value is one word with an @ or a _ in it and no quotes, so a name that lacks its @arch is told so.
    const bool is_name =
        word.find_first_of("@_") != std::string_view::npos && word.find_first_of(" \n\t{[\"") == std::string_view::npos;
    if (is_name) return parse_kernel_name(word);
    const bool is_word = !word.empty() && word.find_first_of(" \n\t{[\"") == std::string_view::npos;
    if (is_word) {
        return usage_error(
            fmt::format("no kernel is called '{}': need its name, which ends in @arch, its id of 16 hex digits, or its "
                        "config in JSON; "
                        "tilewise kernels lists them",
                        word.substr(0, kMaxNameLength)));
    }
    auto json = Json::parse(name_or_json);
    if (!json) return json.error();
    return config_from_json(*json);
}

Json config_schema() {
    Json properties{Json::Object{}};
    Json::Array required;
    for (const ConfigField& field : config_fields()) {
        Json property = field.schema();
        property.set("description", field.help);
        properties.set(std::string(field.name), std::move(property));
        if (is_required(field, Op::gemm)) required.emplace_back(field.name);
    }
    return Json::object({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                         {"title", "tilewise kernel config"},
                         {"type", "object"},
                         {"properties", std::move(properties)},
                         {"required", Json(std::move(required))},
                         {"additionalProperties", false}});
}

}  // namespace tilewise
