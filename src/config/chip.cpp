// SPDX-License-Identifier: MIT
#include "config/chip.hpp"

#include <fmt/core.h>

#include "base/embedded.hpp"
#include "base/json_object.hpp"
#include "base/text.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kChips = "chips/", kEnding = ".json";
constexpr std::int64_t kMostUnits = 1 << 20, kMostCacheBytes = std::int64_t{1} << 40;

std::string joined(const std::string& path, std::string_view key) {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

Status read_price_groups(const Json& json, const std::string& file, const std::string& path, Chip& chip) {
    JsonObject groups(json, file, path);
    for (const PriceGroup& group : price_groups()) {
        if (!groups.ok()) break;
        if (group.backend != chip.backend) continue;
        const Json* entry = groups.child(group.name);
        if (!entry) break;
        JsonObject from(*entry, file, joined(path, group.name));
        for (std::size_t i = 0; i < group.prices.size() && from.ok(); ++i) {
            all_prices(chip.prices)[group.first + i].value = from.number(group.prices[i]);
        }
        if (auto status = from.finish(); !status) return status;
    }
    return groups.finish();
}

// Prices, or the name of a chip of the same backend that has some.
Status read_prices(JsonObject& from, Chip& chip) {
    const Json* json = from.child("prices");
    if (!json) return {};
    if (!json->string()) return read_price_groups(*json, from.file(), from.path_of("prices"), chip);
    if (*json->string() == chip.name) {
        from.fail("prices", "are this chip's own: give their values");
        return {};
    }
    const auto other = find_chip(*json->string());
    if (!other) {
        from.fail("prices", other.error().message);
    } else if (other->backend != chip.backend) {
        from.fail("prices", fmt::format("{} is for {}", other->name, name_of(other->backend)));
    } else {
        chip.prices = other->prices;
    }
    return {};
}

Status read_chip_peaks(JsonObject& from, Chip& chip) {
    const Json* json = from.child("peaks");
    if (!json) return {};
    JsonObject peaks(*json, from.file(), from.path_of("peaks"));
    chip.memory_gbps = peaks.number("memory_gbps");
    chip.cache_gbps = peaks.number("cache_gbps");
    chip.pack_gbps = peaks.has("pack_gbps") ? peaks.number("pack_gbps") : 0;
    chip.launch_us = peaks.number("launch_us");
    const Json* tflops = peaks.child("tflops");
    if (tflops) {
        JsonObject table(*tflops, from.file(), peaks.path_of("tflops"));
        for (std::size_t i = 0; i < EnumNames<DType>::names.size() && table.ok(); ++i) {
            const std::string_view name = EnumNames<DType>::names[i];
            if (table.has(name)) chip.peaks.push_back({static_cast<DType>(i), table.number(name)});
        }
        if (auto status = table.finish(); !status) return status;
    }
    return peaks.finish();
}

}  // namespace

Result<Chip> read_chip(const Json& json, const std::string& file, const std::string& path) {
    JsonObject from(json, file, path);
    if (!from.ok()) return from.finish().error();
    Chip chip;
    chip.name = from.text("name");
    chip.description = from.text("description");
    const auto backend = parse_enum<Backend>(from.text("backend"));
    if (backend) chip.backend = *backend;
    if (from.ok() && !backend) from.fail("backend", backend.error().message);
    chip.units = static_cast<int>(from.integer("units", 1, kMostUnits));
    chip.cache_bytes = from.integer("cache_bytes", 1, kMostCacheBytes);
    if (from.has("cpus")) {
        chip.cpus = from.texts("cpus");
        chip.cpu_arch = from.text("cpu_arch");
    }
    for (const auto read : {read_chip_peaks, read_prices}) {
        if (!from.ok()) break;
        if (auto status = read(from, chip); !status) return status.error();
    }
    if (auto status = from.finish(); !status) return status.error();
    chip.json = json;
    return chip;
}

Result<Chip> parse_chip(std::string_view text, const std::string& file) {
    auto json = Json::parse(text);
    if (!json) return usage_error(fmt::format("{}: {}", file, json.error().message));
    return read_chip(*json, file);
}

Result<Chip> find_chip(std::string_view name) {
    const std::string path = fmt::format("{}{}{}", kChips, name, kEnding);
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path == path) return parse_chip(file.text, path);
    }
    const std::vector<std::string> names = chip_names();
    const std::vector<std::string_view> words(names.begin(), names.end());
    return usage_error(unknown_word("chip", name, words));
}

std::vector<std::string> chip_names() {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with(kChips)) continue;
        const std::string_view left = file.path.substr(kChips.size());
        names.emplace_back(left.substr(0, left.size() - kEnding.size()));
    }
    return names;
}

Json chip_to_json(const Chip& chip) {
    Json::Object groups, members;
    for (const PriceGroup& group : price_groups()) {
        if (group.backend != chip.backend) continue;
        Json::Object values;
        for (std::size_t i = 0; i < group.prices.size(); ++i) {
            values.push_back({std::string(group.prices[i]), Json(all_prices(chip.prices)[group.first + i].value)});
        }
        groups.push_back({std::string(group.name), Json(std::move(values))});
    }
    for (const auto& [key, value] : *chip.json.object()) {
        members.push_back({key, key == "prices" ? Json(groups) : value});
    }
    return Json(std::move(members));
}

}  // namespace tilewise
