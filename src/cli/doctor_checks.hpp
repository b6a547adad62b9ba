// SPDX-License-Identifier: MIT
// The checks that tilewise doctor makes, each a few findings for its table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "build/build_settings.hpp"
#include "config/arch_catalog.hpp"

namespace tilewise::cli {

// warn: something that not everybody needs is missing. fail: what the library needs does not work.
enum class Level : std::uint8_t { ok, warn, fail };

}  // namespace tilewise::cli

namespace tilewise {

template <>
struct EnumNames<cli::Level> {
    static constexpr std::string_view kind = "level";
    static constexpr std::array<std::string_view, 3> names = {"ok", "warn", "FAIL"};
};

}  // namespace tilewise

namespace tilewise::cli {

struct Finding {
    std::string what, found;
    Level level = Level::ok;
};

std::vector<Finding> check_host(const ArchCatalog& archs);
std::vector<Finding> check_archs(const ArchCatalog& archs);         // expands every rule set
std::vector<Finding> check_storage(const BuildSettings& settings);  // writes to the cache
std::vector<Finding> check_kernels(const BuildSettings& settings);  // built in and in packs
std::vector<Finding> check_models(
    const std::vector<std::string>& folders);  // in these, in the usual ones, in the library
std::vector<Finding> check_compilers(const BuildSettings& settings, const ArchCatalog& archs);  // compiles a stub
std::vector<Finding> check_gpus();
std::vector<Finding> check_variables(bool unset_too);

}  // namespace tilewise::cli
