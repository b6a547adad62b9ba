// SPDX-License-Identifier: MIT
#include "base/json_object.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"

namespace tilewise {

JsonObject::JsonObject(const Json& json, std::string file, std::string path)
    : json_(json), file_(std::move(file)), path_(std::move(path)) {
    if (!json_.object()) {
        error_ = usage_error(fmt::format("{}:{}: {} is {}, not an object", file_, json_.line(),
                                         path_.empty() ? "the file" : path_, json_.kind()));
    }
}

std::string JsonObject::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void JsonObject::fail(std::string_view key, std::string_view what) {
    if (error_) return;
    const Json* value = json_.find(key);
    error_ = usage_error(fmt::format("{}:{}: {}: {}", file_, value ? value->line() : json_.line(), path_of(key), what));
}

const Json* JsonObject::take(std::string_view key) {
    if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) taken_.emplace_back(key);
    return json_.find(key);
}

const Json* JsonObject::child_or_null(std::string_view key) { return take(key); }

const Json* JsonObject::child(std::string_view key) {
    const Json* value = take(key);
    if (!value) fail(key, "is missing");
    return value;
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t min, std::int64_t max) {
    const Json* value = child(key);
    if (!value) return min;
    const std::int64_t* number = value->integer();
    if (!number || *number < min || *number > max) {
        fail(key, fmt::format("needs a whole number from {} to {}", min, max));
        return min;
    }
    return *number;
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t min, std::int64_t max, std::int64_t otherwise) {
    return take(key) ? integer(key, min, max) : otherwise;
}

double JsonObject::number(std::string_view key) {
    const Json* value = child(key);
    if (!value) return 0;
    const double number = value->real()      ? *value->real()
                          : value->integer() ? static_cast<double>(*value->integer())
                                             : -1;
    if (number <= 0) fail(key, "needs a number above 0");
    return number;
}

std::string JsonObject::text(std::string_view key) {
    const Json* value = child(key);
    if (!value) return {};
    if (!value->string() || value->string()->empty()) {
        fail(key, "needs a non-empty string");
        return {};
    }
    return *value->string();
}

std::string JsonObject::text_or(std::string_view key, std::string_view otherwise) {
    return take(key) ? text(key) : std::string(otherwise);
}

bool JsonObject::flag_or(std::string_view key, bool otherwise) {
    const Json* value = take(key);
    if (!value) return otherwise;
    if (!value->boolean()) fail(key, "needs true or false");
    return value->boolean() ? *value->boolean() : otherwise;
}

std::vector<std::string> JsonObject::texts(std::string_view key) {
    std::vector<std::string> words;
    const Json* value = child(key);
    if (!value) return words;
    if (!value->array()) {
        fail(key, "needs an array of strings");
        return words;
    }
    for (const Json& item : *value->array()) {
        if (item.string()) {
            words.push_back(*item.string());
        } else {
            fail(key, fmt::format("needs strings; line {} has {}", item.line(), item.kind()));
        }
    }
    return words;
}

std::vector<std::string> JsonObject::texts_or_none(std::string_view key) {
    return take(key) ? texts(key) : std::vector<std::string>{};
}

Status JsonObject::finish() {
    if (!error_) {
        for (const auto& [key, value] : *json_.object()) {
            if (std::find(taken_.begin(), taken_.end(), key) != taken_.end()) continue;
            std::vector<std::string_view> known(taken_.begin(), taken_.end());
            fail(key, unknown_word("key", key, known));
        }
    }
    return error_ ? Status(*error_) : Status();
}

}  // namespace tilewise
