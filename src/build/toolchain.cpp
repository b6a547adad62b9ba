// SPDX-License-Identifier: MIT
#include "build/toolchain.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/process.hpp"
#include "base/text.hpp"
#include "base/trust.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

// The oldest that know every -m flag we use and C++20 well enough.
constexpr int kOldestGcc = 11;
constexpr int kOldestClang = 13;

// The plain names first: they are what the user or the distribution has chosen.
constexpr std::array<std::string_view, 13> kNames = {
    "c++",        "g++",        "clang++",    "g++-14",     "g++-13",     "g++-12",    "clang++-19",
    "clang++-18", "clang++-17", "clang++-16", "clang++-15", "clang++-14", "clang++-13"};

// The user's PATH, unless we have rights that the user lacks.
std::string search_path() {
    const char* path = secure_getenv("PATH");
    return path ? path : std::string(kTrustedPath);
}

// "#define NAME 12" -> 12
std::optional<std::int64_t> macro(std::string_view text, std::string_view name) {
    for (std::string_view line : split(text, '\n')) {
        const std::string start = fmt::format("#define {} ", name);
        if (line.starts_with(start)) return parse_integer(trim(line.substr(start.size())));
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> program_on_path(std::string_view name) {
    const auto runs = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
    if (name.find('/') != std::string_view::npos) {
        std::error_code unknown;
        const std::string path = std::filesystem::absolute(name, unknown);
        return !unknown && runs(path) ? std::optional(path) : std::nullopt;
    }
    const std::string folders = search_path();
    for (const std::string_view folder : split(folders, ':')) {
        if (!folder.starts_with('/')) continue;
        std::string path = fmt::format("{}/{}", folder, name);
        if (runs(path)) return path;
    }
    return std::nullopt;
}

// The macros say what a compiler is, whatever its file is called and however its distribution words --version.
Result<Toolchain> identify_compiler(const std::string& path) {
    ProcessSpec spec;
    spec.argv = {path, "-x", "c++", "-dM", "-E", "/dev/null"};
    spec.environment = {{"LC_ALL", "C"}};
    spec.time_limit = std::chrono::seconds(10);
    const auto outcome = run_process(spec);
    if (!outcome) return outcome.error();
    for (const auto& [kind, major, minor, patch] :
         {std::array{"clang++", "__clang_major__", "__clang_minor__", "__clang_patchlevel__"},
          std::array{"g++", "__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"}}) {
        const auto number = macro(outcome->output, major);
        if (!number) continue;
        return Toolchain{path, kind,
                         fmt::format("{}.{}.{}", *number, macro(outcome->output, minor).value_or(0),
                                     macro(outcome->output, patch).value_or(0))};
    }
    return toolchain_error(fmt::format("'{}' is neither g++ nor clang++", path));
}

namespace {

bool new_enough(const Toolchain& found) {
    const auto major = parse_integer(split(found.version, '.')[0]).value_or(0);
    return major >= (found.kind == "g++" ? kOldestGcc : kOldestClang);
}

std::string needed() { return fmt::format("g++ {} or newer, or clang++ {} or newer", kOldestGcc, kOldestClang); }

Result<Toolchain> find_named(const std::string& wanted) {
    const auto path = program_on_path(wanted);
    if (!path) {
        return toolchain_error(fmt::format("the compiler '{}' (TILEWISE_CXX) is not there; need {}", wanted, needed()));
    }
    auto found = identify_compiler(*path);
    if (!found) {
        return toolchain_error(
            fmt::format("TILEWISE_CXX names no compiler: {}; need {}", found.error().message, needed()));
    }
    if (!new_enough(*found)) {
        return toolchain_error(fmt::format("the compiler '{}' (TILEWISE_CXX) is {} {}; need {}", wanted, found->kind,
                                           found->version, needed()));
    }
    return found;
}

Result<Toolchain> find_any() {
    std::string too_old;
    for (const std::string_view name : kNames) {
        const auto path = program_on_path(name);
        if (!path) continue;
        auto found = identify_compiler(*path);
        if (found && new_enough(*found)) return found;
        too_old += too_old.empty() ? "; found " : ", ";
        too_old += found ? fmt::format("{} ({} {})", *path, found->kind, found->version) : found.error().message;
    }
    return toolchain_error(
        fmt::format("no C++ compiler on PATH (c++, g++, clang++, or g++-14, clang++-19 and the "
                    "like): need {}{}",
                    needed(), too_old));
}

}  // namespace

Result<Toolchain> find_host_compiler(const std::string& wanted) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, std::string>, Toolchain> known;
    const std::pair key(wanted, search_path());
    {
        const std::scoped_lock lock(mutex);
        if (const auto at = known.find(key); at != known.end()) return at->second;
    }
    // Outside the lock, so that a fork meanwhile leaves no locked mutex behind; finding it twice does no harm. A
    // failure is not remembered: a compiler may be installed while we run.
    auto found = wanted.empty() ? find_any() : find_named(wanted);
    if (found) {
        const std::scoped_lock lock(mutex);
        known.emplace(key, *found);
    }
    return found;
}

std::vector<std::string> host_flags(std::span<const std::string> features) {
    std::vector<std::string> flags;
    for (const std::string& feature : features) {
        // The kernel's names in /proc/cpuinfo and the compilers' differ in the underscore only: amx_tile is
        // -mamx-tile, the others drop it.
        std::string flag = "-m";
        for (const char c : feature) {
            if (c != '_') flag += c;
            if (c == '_' && feature.starts_with("amx")) flag += '-';
        }
        flags.push_back(std::move(flag));
    }
    return flags;
}

}  // namespace tilewise
