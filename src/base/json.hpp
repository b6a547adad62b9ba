// SPDX-License-Identifier: MIT
// A JSON value with its own small parser and writer. Objects keep their order, so that output is stable and reads
// like the table it came from; every parsed value remembers its line, so that a bad file is refused with its place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

class Json {
public:
    using Array = std::vector<Json>;
    struct Member;
    using Object = std::vector<Member>;

    Json();  // null
    Json(bool value);
    Json(int value);
    Json(std::int64_t value);
    Json(std::size_t value);
    Json(double value);
    Json(const char* value);
    Json(std::string_view value);
    Json(std::string value);
    Json(Array value);
    Json(Object value);

    static Json object(std::initializer_list<Member> members);

    bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
    const bool* boolean() const { return std::get_if<bool>(&value_); }
    const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value_); }
    const double* real() const { return std::get_if<double>(&value_); }
    const std::string* string() const { return std::get_if<std::string>(&value_); }
    const Array* array() const { return std::get_if<Array>(&value_); }
    const Object* object() const { return std::get_if<Object>(&value_); }
    std::string_view kind() const;  // "null", "boolean", "integer", "number", "string", "array", "object"

    const Json* find(std::string_view key) const;  // null unless this is an object with that key
    void set(std::string key, Json value);         // appends; this must be an object
    void push_back(Json value);                    // this must be an array
    int line() const { return line_; }             // 1-based; 0 for a value that was not parsed

    std::string dump(int indent = -1) const;  // -1: one line; otherwise spaces per level

    static Result<Json> parse(std::string_view text);  // an error names line and column

    bool operator==(const Json& other) const;

private:
    friend class JsonParser;
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value_;
    int line_ = 0;
};

struct Json::Member {
    std::string first;  // the key
    Json second;        // its value

    bool operator==(const Member&) const = default;
};

inline Json::Json() = default;
inline Json::Json(bool value) : value_(value) {}
inline Json::Json(int value) : value_(std::int64_t{value}) {}
inline Json::Json(std::int64_t value) : value_(value) {}
inline Json::Json(std::size_t value) : value_(static_cast<std::int64_t>(value)) {}
inline Json::Json(double value) : value_(value) {}
inline Json::Json(const char* value) : value_(std::string(value)) {}
inline Json::Json(std::string_view value) : value_(std::string(value)) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(Array value) : value_(std::move(value)) {}
inline Json::Json(Object value) : value_(std::move(value)) {}

}  // namespace tilewise
