// SPDX-License-Identifier: MIT
#include "config/arch_catalog.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/embedded.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace tilewise {
namespace {

bool is_arch_like(std::string_view name) {
    return std::any_of(kBackendFacts.begin(), kBackendFacts.end(),
                       [&](const BackendFacts& facts) { return name.starts_with(facts.arch_prefix); });
}

// The known name with one letter more or less at its end: sm_90a where sm_90 was written.
std::optional<std::string_view> slip_of(std::string_view name, const std::vector<std::string_view>& names) {
    const auto found = std::find_if(names.begin(), names.end(), [&](std::string_view known) {
        return known.size() != name.size() && (known.starts_with(name) || name.starts_with(known)) &&
               std::max(known.size(), name.size()) - std::min(known.size(), name.size()) == 1;
    });
    return found == names.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

Result<ArchCatalog> ArchCatalog::embedded() {
    ArchCatalog catalog;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with("arch/")) continue;
        auto arch = parse_arch(file.text, std::string(file.path));
        if (!arch) return arch.error();
        catalog.add(std::move(*arch));
    }
    return catalog;
}

Status ArchCatalog::add_file(const std::string& path) {
    auto text = read_file(path);
    if (!text) return text.error();
    auto arch = parse_arch(*text, path);
    if (!arch) return arch.error();
    add(std::move(*arch));
    return {};
}

void ArchCatalog::add(ArchSpec arch) {
    const auto at = std::lower_bound(archs_.begin(), archs_.end(), arch,
                                     [](const ArchSpec& a, const ArchSpec& b) { return a.name < b.name; });
    if (at != archs_.end() && at->name == arch.name) {
        *at = std::move(arch);
    } else {
        archs_.insert(at, std::move(arch));
    }
}

Result<const ArchSpec*> ArchCatalog::find(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const ArchSpec& arch : archs_) {
        if (arch.name == name) return &arch;
        names.push_back(arch.name);
    }
    // Another number is no slip: there is a chip of that name, for which the nearest arch would be wrong.
    if (const auto meant = slip_of(name, names)) {
        return usage_error(fmt::format("unknown arch '{}'; did you mean '{}'?", name, *meant));
    }
    if (!is_arch_like(name)) return usage_error(unknown_word("arch", name, names));
    return usage_error(
        fmt::format("unknown arch '{}'; there are {}. Add one with --arch-file (TILEWISE_ARCH_FILE). An NVIDIA GPU "
                    "newer than these runs "
                    "the code of an older one",
                    name.substr(0, 64), join(names, ", ")));
}

}  // namespace tilewise
