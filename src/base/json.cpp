// SPDX-License-Identifier: MIT
#include "base/json.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"

namespace tilewise {
namespace {

// The output is JSON whatever the input: bytes that are no UTF-8 become the replacement character.
void write_string(std::string& out, std::string_view text) {
    out += '"';
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_length(text.substr(i));
        if (length != 1) {
            out += length == 0 ? "\xef\xbf\xbd" : text.substr(i, length);
            i += std::max<std::size_t>(1, length);
            continue;
        }
        const char c = text[i++];
        switch (c) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\n': out += "\\n"; break;
            case '\t': out += "\\t"; break;
            case '\r': out += "\\r"; break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
                } else {
                    out += c;
                }
        }
    }
    out += '"';
}

void write_number(std::string& out, double value) {
    // JSON has no word for these; null is what every other writer uses.
    if (!std::isfinite(value)) {
        out += "null";
        return;
    }
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";  // stays a number with a fraction when read back
    out += text;
}

void break_line(std::string& out, int indent, int depth) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
}

void write(std::string& out, const Json& json, int indent, int depth) {
    if (json.is_null()) {
        out += "null";
    } else if (const auto* boolean = json.boolean()) {
        out += *boolean ? "true" : "false";
    } else if (const auto* integer = json.integer()) {
        append_integer(out, *integer);
    } else if (const auto* real = json.real()) {
        write_number(out, *real);
    } else if (const auto* string = json.string()) {
        write_string(out, *string);
    } else if (const auto* array = json.array()) {
        out += '[';
        for (std::size_t i = 0; i < array->size(); ++i) {
            if (i > 0) out += ',';
            break_line(out, indent, depth + 1);
            write(out, (*array)[i], indent, depth + 1);
        }
        if (!array->empty()) break_line(out, indent, depth);
        out += ']';
    } else if (const auto* object = json.object()) {
        out += '{';
        for (std::size_t i = 0; i < object->size(); ++i) {
            if (i > 0) out += ',';
            break_line(out, indent, depth + 1);
            write_string(out, (*object)[i].first);
            out += indent < 0 ? ":" : ": ";
            write(out, (*object)[i].second, indent, depth + 1);
        }
        if (!object->empty()) break_line(out, indent, depth);
        out += '}';
    }
}

}  // namespace

std::string_view Json::kind() const {
    constexpr std::array<std::string_view, 7> kKinds = {"null",   "boolean", "integer", "number",
                                                        "string", "array",   "object"};
    return kKinds[value_.index()];
}

Json Json::object(std::initializer_list<Member> members) { return Json(Object(members)); }

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

const Json* Json::find(std::string_view key) const {
    if (const Object* members = object()) {
        for (const Member& member : *members) {
            if (member.first == key) return &member.second;
        }
    }
    return nullptr;
}

void Json::set(std::string key, Json value) { std::get<Object>(value_).push_back({std::move(key), std::move(value)}); }

void Json::push_back(Json value) { std::get<Array>(value_).push_back(std::move(value)); }

std::string Json::dump(int indent) const {
    std::string out;
    write(out, *this, indent, 0);
    return out;
}

}  // namespace tilewise
