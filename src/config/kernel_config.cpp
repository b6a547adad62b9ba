// SPDX-License-Identifier: MIT
#include "config/kernel_config.hpp"

#include "config/field_values.hpp"

namespace tilewise {
namespace {

const ConfigField kFields[] = {
#define FIELD(type_, name_, default_value, mark_, scope_, role_, tag_, help_)                             \
    {#name_,                                                                                              \
     #type_,                                                                                              \
     Mark::mark_,                                                                                         \
     Scope::scope_,                                                                                       \
     Role::role_,                                                                                         \
     tag_,                                                                                                \
     help_,                                                                                               \
     [](const KernelConfig& c) { return c.name_ == c.default_##name_(); },                                \
     [](KernelConfig& c) { c.name_ = c.default_##name_(); },                                              \
     [](const KernelConfig& c, std::string& out) { field_values::print(c.name_, out); },                  \
     [](KernelConfig& c, std::string_view text) -> Status { return field_values::parse(c.name_, text); }, \
     [](const KernelConfig& c) { return field_values::to_json(c.name_); },                                \
     [] { return field_values::schema<type_>(); }},
#include "config/fields.def"
#undef FIELD
};

}  // namespace

std::span<const ConfigField> config_fields() { return kFields; }

const ConfigField* find_field(std::string_view name) {
    for (const ConfigField& field : kFields) {
        if (field.name == name) return &field;
    }
    return nullptr;
}

std::string print_shape(const Shape3& shape) {
    std::string text;
    field_values::print(shape, text);
    return text;
}

Result<Shape3> parse_shape(std::string_view text) {
    Shape3 shape;
    if (auto status = field_values::parse(shape, text); !status) return status.error();
    return shape;
}

}  // namespace tilewise
