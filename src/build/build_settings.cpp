// SPDX-License-Identifier: MIT
#include "build/build_settings.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"

namespace tilewise {
namespace {

// Empty counts as not set. Not std::getenv: in a program with raised rights its user must not choose what is run.
std::string variable(const char* name) {
    const char* value = secure_getenv(name);
    return value ? value : "";
}

std::string cache_dir() {
    if (const std::string dir = variable("TILEWISE_CACHE_DIR"); !dir.empty()) {
        std::error_code error;
        const std::filesystem::path path = std::filesystem::absolute(dir, error);
        return error ? dir : path.lexically_normal().string();
    }
    // The XDG specification: a path that is not absolute is to be ignored.
    if (const std::string dir = variable("XDG_CACHE_HOME"); dir.starts_with('/')) return dir + "/tilewise";
    if (const std::string home = variable("HOME"); home.starts_with('/')) return home + "/.cache/tilewise";
    return {};
}

Error bad_value(std::string_view name, std::string_view value, std::string_view need) {
    return usage_error(fmt::format("{} is '{}'; need {}", name, value, need));
}

}  // namespace

Result<BuildSettings> build_settings() {
    BuildSettings settings;
    settings.cache_dir = cache_dir();
    settings.compiler = variable("TILEWISE_CXX");
    settings.nvrtc = variable("TILEWISE_NVRTC");
    settings.amdclang = variable("TILEWISE_AMDCLANG");
    settings.hiprtc = variable("TILEWISE_HIPRTC");
    if (const std::string text = variable("TILEWISE_CACHE_MAX"); !text.empty()) {
        const auto bytes = parse_bytes(text);
        if (!bytes || *bytes < 0) return bad_value("TILEWISE_CACHE_MAX", text, "a size in bytes, such as 512M or 2G");
        settings.cache_max_bytes = *bytes;
    }
    if (const std::string text = variable("TILEWISE_RECORDS_MAX"); !text.empty()) {
        const auto bytes = parse_bytes(text);
        constexpr std::int64_t kMost = std::int64_t{1} << 30;
        if (!bytes || *bytes < 0 || *bytes > kMost) {
            return bad_value("TILEWISE_RECORDS_MAX", text, "a size in bytes from 0 to 1G, such as 64M");
        }
        settings.records_max_bytes = *bytes;
    }
    if (const std::string text = variable("TILEWISE_COMPILE_TIMEOUT_S"); !text.empty()) {
        const auto seconds = parse_integer(text);
        if (!seconds || *seconds < 1 || *seconds > 86400) {
            return bad_value("TILEWISE_COMPILE_TIMEOUT_S", text, "whole seconds from 1 to 86400");
        }
        settings.compile_limit = std::chrono::seconds(*seconds);
    }
    if (const std::string text = variable("TILEWISE_EPILOGUES"); !text.empty()) {
        if (text != "exact" && text != "any") return bad_value("TILEWISE_EPILOGUES", text, "exact or any");
        settings.exact_epilogues = text == "exact";
    }
    if (const std::string text = variable("TILEWISE_BACKGROUND"); !text.empty()) {
        if (text != "0" && text != "1") return bad_value("TILEWISE_BACKGROUND", text, "0 or 1");
        settings.background = text == "1";
    }
    const std::string packs = variable("TILEWISE_PACKS");
    for (const std::string_view path : split(packs, ':')) {
        if (!path.empty()) settings.packs.emplace_back(path);
    }
    if (const std::string dir = variable("TMPDIR"); dir.starts_with('/')) settings.temp_dir = dir;
    return settings;
}

}  // namespace tilewise
