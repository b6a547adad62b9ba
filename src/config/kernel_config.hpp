// SPDX-License-Identifier: MIT
// How to compute: a kernel config is a plain value whose fields are declared in fields.def. This header gives the
// struct and the table made from it; names and ids are in config_name.hpp, JSON in config_json.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"
#include "config/types.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct KernelConfig {
#define FIELD(type, name, default_value, mark, scope, role, tag, help) type name = default_value;
#include "config/fields.def"
#undef FIELD

    bool operator==(const KernelConfig&) const = default;

    // A field that is not given has this value, which may follow from the fields above it.
#define FIELD(type, name, default_value, mark, scope, role, tag, help) \
    type default_##name() const { return default_value; }
#include "config/fields.def"
#undef FIELD
};

enum class Mark { code, launch };
enum class Scope { gemm, conv, both };
enum class Role { lead, plain, option };

struct ConfigField {
    std::string_view name;
    std::string_view type;
    Mark mark;
    Scope scope;
    Role role;
    std::string_view tag;
    std::string_view help;

    bool (*is_default)(const KernelConfig&);
    void (*reset)(KernelConfig&);
    void (*print)(const KernelConfig&, std::string& out);  // appends the value
    Status (*parse)(KernelConfig&, std::string_view);
    Json (*to_json)(const KernelConfig&);  // whole numbers and truth values as such, the rest as printed
    Json (*schema)();
};

std::span<const ConfigField> config_fields();          // in table order
const ConfigField* find_field(std::string_view name);  // null when there is none

std::string print_shape(const Shape3& shape);
Result<Shape3> parse_shape(std::string_view text);

}  // namespace tilewise
