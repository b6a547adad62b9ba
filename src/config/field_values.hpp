// SPDX-License-Identifier: MIT
// How a value of each field type is printed, parsed and described in a JSON schema. Included by
// kernel_config.cpp only: everything else reaches values through the field table.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <type_traits>

#include "base/text.hpp"
#include "config/kernel_config.hpp"

namespace tilewise::field_values {

constexpr std::int64_t kMaxNumber = 1 << 16;  // more than any tile, count or width can be

inline Error bad_value(std::string_view what, std::string_view text) {
    return usage_error(fmt::format("'{}' is not {}", text.substr(0, 64), what));
}

// A fixed number of AxB… parts, each from 0 to kMaxNumber.
template <std::size_t count>
Result<std::array<int, count>> parse_parts(std::string_view text, std::string_view what) {
    const auto values = parse_extents(text);
    if (!values || values->size() != count) return bad_value(what, text);
    std::array<int, count> parts;
    for (std::size_t i = 0; i < count; ++i) {
        if ((*values)[i] < 0 || (*values)[i] > kMaxNumber) return bad_value(what, text);
        parts[i] = static_cast<int>((*values)[i]);
    }
    return parts;
}

inline void print(int value, std::string& out) { append_integer(out, value); }
inline void print(bool value, std::string& out) { out += value ? "true" : "false"; }
inline void print(const std::string& value, std::string& out) { out += value; }
inline void print(const Shape3& value, std::string& out) {
    append_integer(out, value.m);
    out += 'x';
    append_integer(out, value.n);
    out += 'x';
    append_integer(out, value.k);
}
inline void print(const Shape2& value, std::string& out) {
    append_integer(out, value.m);
    out += 'x';
    append_integer(out, value.n);
}
inline void print(const Padding& value, std::string& out) {
    if (value.m) out += 'm';
    if (value.n) out += 'n';
    if (value.k) out += 'k';
    if (!value.m && !value.n && !value.k) out += "none";
}
inline void print(const Extents& value, std::string& out) {
    if (value.rank == 0) out += "none";
    for (int i = 0; i < value.rank; ++i) {
        if (i > 0) out += 'x';
        append_integer(out, value[i]);
    }
}
template <class E>
requires std::is_enum_v<E>
void print(E value, std::string& out) { out += name_of(value); }

inline Status parse(int& value, std::string_view text) {
    const auto number = parse_integer(text);
    if (!number || *number < 0 || *number > kMaxNumber)
        return bad_value(fmt::format("a whole number from 0 to {}", kMaxNumber), text);
    value = static_cast<int>(*number);
    return {};
}
inline Status parse(bool& value, std::string_view text) {
    if (text != "true" && text != "false") return bad_value("true or false", text);
    value = text == "true";
    return {};
}
// The only text field names an arch; its characters must be safe in a name and in a file name.
inline Status parse(std::string& value, std::string_view text) {
    constexpr std::size_t kLongest = 32;
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    if (text.empty() || text.size() > kLongest || text.find_first_not_of(kAllowed) != std::string_view::npos) {
        return bad_value("a name of at most 32 characters from a-z, 0-9, - and _", text);
    }
    value = text;
    return {};
}
inline Status parse(Shape3& value, std::string_view text) {
    const auto parts = parse_parts<3>(text, "three extents such as 128x128x64");
    if (!parts) return parts.error();
    value = {(*parts)[0], (*parts)[1], (*parts)[2]};
    return {};
}
inline Status parse(Shape2& value, std::string_view text) {
    const auto parts = parse_parts<2>(text, "two extents such as 2x1");
    if (!parts) return parts.error();
    value = {(*parts)[0], (*parts)[1]};
    return {};
}
inline Status parse(Padding& value, std::string_view text) {
    for (int bits = 0; bits < 8; ++bits) {
        const Padding candidate{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
        std::string printed;
        print(candidate, printed);
        if (printed == text) {
            value = candidate;
            return {};
        }
    }
    return bad_value("some of mnk in that order, or none", text);
}
inline Status parse(Extents& value, std::string_view text) {
    value = Extents{};
    if (text == "none") return {};
    const auto values = parse_extents(text);
    if (!values || values->size() > kMaxSpatialDims) return bad_value("extents such as 3x3, or none", text);
    for (const std::int64_t extent : *values) {
        if (extent < 1 || extent > kMaxNumber) return bad_value("extents of 1 or more, or none", text);
        value[value.rank++] = extent;
    }
    return {};
}
template <class E>
requires std::is_enum_v<E> Status parse(E& value, std::string_view text) {
    auto parsed = parse_enum<E>(text);
    if (!parsed) return parsed.error();
    value = *parsed;
    return {};
}

template <class T>
Json to_json(const T& value) {
    if constexpr (std::same_as<T, int> || std::same_as<T, bool>) {
        return Json(value);
    } else {
        std::string text;
        print(value, text);
        return Json(std::move(text));
    }
}

template <class T>
Json schema() {
    if constexpr (std::same_as<T, int>) {
        return Json::object({{"type", "integer"}, {"minimum", 0}, {"maximum", kMaxNumber}});
    } else if constexpr (std::same_as<T, bool>) {
        return Json::object({{"type", "boolean"}});
    } else if constexpr (std::is_enum_v<T>) {
        Json::Array words;
        for (const std::string_view name : EnumNames<T>::names) words.emplace_back(name);
        return Json::object({{"type", "string"}, {"enum", Json(std::move(words))}});
    } else {
        std::string_view pattern = "^[a-z0-9_-]{1,32}$";
        if constexpr (std::same_as<T, Shape3>) pattern = "^[0-9]+x[0-9]+x[0-9]+$";
        if constexpr (std::same_as<T, Shape2>) pattern = "^[0-9]+x[0-9]+$";
        if constexpr (std::same_as<T, Padding>) pattern = "^(mnk|mn|mk|nk|m|n|k|none)$";
        if constexpr (std::same_as<T, Extents>) pattern = "^([1-9][0-9]*(x[1-9][0-9]*){0,2}|none)$";
        return Json::object({{"type", "string"}, {"pattern", pattern}});
    }
}

}  // namespace tilewise::field_values
