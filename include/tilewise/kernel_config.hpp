// SPDX-License-Identifier: MIT
// How to compute: a KernelConfig is a value that the library prints as a kernel's name and reads back from it. Fields are
// named and written as in docs/configs.md; the library, not this header, knows which there are.
#pragma once

#include <string>
#include <utility>

#include "tilewise/error.hpp"

namespace tilewise {

class KernelConfig {
public:
    // From a kernel's name or a config in JSON.
    static Result<KernelConfig> parse(const std::string& name_or_json) {
        // Setting a field to what it is gives the name.
        const auto arch = field_of(name_or_json, "arch");
        if (!arch) return arch.error();
        return changed(name_or_json, "arch", *arch);
    }

    const std::string& name() const { return name_; }

    // A field as text: get("tile") is "128x128x64".
    Result<std::string> get(const std::string& field) const { return field_of(name_, field); }
    // A copy with one field changed; it may break a rule.
    Result<KernelConfig> with(const std::string& field, const std::string& value) const {
        return changed(name_, field, value);
    }

    // Every rule it breaks, as JSON: see tilewise_check.
    Result<std::string> check() const {
        return detail::text_of([&](char** out) { return tilewise_check(name_.c_str(), 0, out); });
    }
    // The nearest valid config: itself when it is valid.
    Result<KernelConfig> corrected() const {
        return named(detail::text_of([&](char** out) { return tilewise_correct(name_.c_str(), out); }));
    }
    bool is_valid() const {
        const auto nearest = corrected();
        return nearest && nearest->name_ == name_;
    }

    // {"name", "id", "available", "config"}
    Result<std::string> describe() const {
        return detail::text_of([&](char** out) { return tilewise_find_kernel(name_.c_str(), nullptr, out); });
    }

    bool operator==(const KernelConfig& other) const { return name_ == other.name_; }

private:
    explicit KernelConfig(std::string name) : name_(std::move(name)) {}

    static Result<KernelConfig> named(const Result<std::string>& name) {
        if (!name) return name.error();
        return KernelConfig(*name);
    }
    static Result<std::string> field_of(const std::string& config, const std::string& field) {
        return detail::text_of([&](char** out) { return tilewise_config_get(config.c_str(), field.c_str(), out); });
    }
    static Result<KernelConfig> changed(const std::string& config, const std::string& field, const std::string& value) {
        return named(detail::text_of(
            [&](char** out) { return tilewise_config_set(config.c_str(), field.c_str(), value.c_str(), out); }));
    }

    std::string name_;
};

}  // namespace tilewise
