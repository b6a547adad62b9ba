// SPDX-License-Identifier: MIT
// A set of kernels to choose from. Copies share one set; registries that were made apart are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewise/kernel_config.hpp"

namespace tilewise {

// Which kernels of a rule set; an empty text means "any", of the arch the host's CPU, of the rule set the default.
struct KernelQuery {
    std::string arch, op, dtype, rule_set;
    bool only_available = true;  // kernels that there is code for

    std::string json() const {
        std::string text = std::string("{\"available\": ") + (only_available ? "true" : "false");
        const std::pair<const char*, const std::string*> words[] = {
            {"arch", &arch}, {"op", &op}, {"dtype", &dtype}, {"rule_set", &rule_set}};
        for (const auto& [key, value] : words) {
            if (!value->empty()) text += std::string(", \"") + key + "\": " + detail::quoted(*value);
        }
        return text + "}";
    }
};

enum class Priority { low, normal, high };

class Registry {
public:
    static Result<Registry> create(const std::string& name = "default") {
        tilewise_registry* made = nullptr;
        const tilewise_status code = tilewise_registry_create(name.c_str(), &made);
        if (code != TILEWISE_OK) return Error::last(code);
        return Registry(made);
    }

    // Each returns how many kernels were taken: one that is there already is replaced only by one of higher priority.
    Result<std::int64_t> add(const KernelQuery& query) {
        return counted([&](std::int64_t* n) { return tilewise_registry_add_rule_set(get(), query.json().c_str(), n); });
    }
    Result<std::int64_t> add(const KernelConfig& config, Priority priority = Priority::normal) {
        constexpr const char* kNames[] = {"low", "normal", "high"};
        const char* name = kNames[static_cast<int>(priority)];
        return counted([&](std::int64_t* n) { return tilewise_registry_add(get(), config.name().c_str(), name, n); });
    }
    Result<std::int64_t> merge(const Registry& other) {
        return counted([&](std::int64_t* n) { return tilewise_registry_merge(get(), other.get(), n); });
    }
    Result<std::int64_t> import_json(const std::string& json) {
        return counted([&](std::int64_t* n) { return tilewise_registry_import(get(), json.c_str(), n); });
    }
    Result<std::string> export_json(bool statistics = true) const {
        return detail::text_of([&](char** out) { return tilewise_registry_export(get(), statistics ? 1 : 0, out); });
    }
    Status clear() { return Status::of(tilewise_registry_clear(get())); }

    std::int64_t size() const { return tilewise_registry_size(get()); }
    std::vector<std::string> names() const {  // in the order of priority, then name
        std::vector<std::string> all;
        for (std::int64_t i = 0;; ++i) {
            char* name = nullptr;
            if (tilewise_registry_name_at(get(), i, &name) != TILEWISE_OK) return all;
            all.push_back(detail::take(name));
        }
    }
    bool has(const std::string& name_or_id) const { return find(name_or_id).ok(); }
    // {"name", "id", "priority", "available", "config"}
    Result<std::string> find(const std::string& name_or_id) const {
        return detail::text_of([&](char** out) { return tilewise_registry_find(get(), name_or_id.c_str(), out); });
    }

    tilewise_registry* get() const { return handle_.get(); }

private:
    explicit Registry(tilewise_registry* handle) : handle_(handle, tilewise_registry_destroy) {}

    template <class Call>
    static Result<std::int64_t> counted(const Call& call) {
        std::int64_t count = 0;
        const tilewise_status code = call(&count);
        if (code != TILEWISE_OK) return Error::last(code);
        return count;
    }

    std::shared_ptr<tilewise_registry> handle_;
};

}  // namespace tilewise
