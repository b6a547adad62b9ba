// SPDX-License-Identifier: MIT
#include "compat/settings.hpp"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tilewise::compat {
namespace {

constexpr int kMostRuns = 1000000;
constexpr const char* kNames[] = {"dtype", "layout", "device", "rule_set", "kernel", "warmup", "repeat"};

bool read_number(const std::string& text, int least, int& out) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > kMostRuns) return false;
    out = value;
    return true;
}

// Words go into problem texts and queries, which are read again there; here they only must not add a field of their own.
bool is_word(std::string_view text) {
    for (const char c : text) {
        if (!std::isalnum(static_cast<unsigned char>(c)) && std::string_view("_-.:@").find(c) == std::string_view::npos)
            return false;
    }
    return true;
}

std::string variable_of(std::string_view name) {
    std::string variable = "TILEWISE_COMPAT_";
    for (const char c : name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return variable;
}

}  // namespace

bool Settings::set(const std::string& name, const std::string& value) {
    if (name == "warmup") return read_number(value, 0, warmup);
    if (name == "repeat") return read_number(value, 1, repeat);
    if (!is_word(value)) return false;
    if (name == "layout") return layout = value, true;
    if (name == "kernel") return kernel = value, true;
    if (value.empty()) return false;
    if (name == "dtype") return dtype = value, true;
    if (name == "device") return device = value, true;
    if (name == "rule_set") return rule_set = value, true;
    return false;
}

Settings settings_of_environment(std::string& problem) {
    Settings settings;
    for (const char* name : kNames) {
        const std::string variable = variable_of(name);
        const char* value = secure_getenv(variable.c_str());
        if (value && *value && !settings.set(name, value)) problem = variable + " has no such value: " + value;
    }
    return settings;
}

}  // namespace tilewise::compat
